#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

struct StaticMemory;

/// The variable that an address among a library's static ones belongs to, as its source calls it ("kept", "(anonymous
/// namespace)::Cache::rows"); empty where its file tells no names.
std::string variable_at(const StaticMemory& of, uint64_t address);

/// What an object says of its own class.
struct ObjectClass {
  std::string name;                ///< "(anonymous namespace)::Keeper"; empty: it has no virtual functions
  std::vector<std::string> bases;  ///< all of them, nearest first
  bool is_a(const std::string& base) const;
};
/// Of the object whose first word is given: a table of virtual functions has its class in front. Any word may be asked
/// about.
ObjectClass class_of_object(uint64_t first_word);

/// A class as a person writes it: without allocators and what the standard library puts around it, so that what a
/// shared pointer counts is called by its own name.
std::string short_class(const std::string& name);
/// "wave.so" of "/home/ann/wave.so"
std::string file_name(const std::string& path);

}  // namespace tenon
