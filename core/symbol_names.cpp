#include "core/symbol_names.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <typeinfo>

#include "core/error.h"
#include "core/mapped_file.h"
#include "core/memory_image.h"

namespace tenon {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

template <class T>
bool copy_from(std::string_view file, uint64_t offset, T& to) {
  if (offset > file.size() || file.size() - offset < sizeof(T)) return false;
  std::memcpy(&to, file.data() + offset, sizeof to);
  return true;
}

/// The symbol of a file that a value lies in; of a type as STT_OBJECT.
std::string symbol_in(std::string_view file, uint64_t value, unsigned char type) {
  Elf64_Ehdr head;
  if (!copy_from(file, 0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return {};
  for (const uint32_t wanted : {SHT_SYMTAB, SHT_DYNSYM}) {
    for (uint64_t i = 0; i < head.e_shnum; ++i) {
      Elf64_Shdr table, names;
      if (!copy_from(file, head.e_shoff + i * sizeof table, table) || table.sh_type != wanted) continue;
      if (!copy_from(file, head.e_shoff + table.sh_link * sizeof names, names)) continue;
      Elf64_Sym s;
      for (uint64_t at = 0; at + sizeof s <= table.sh_size && copy_from(file, table.sh_offset + at, s);
           at += sizeof s) {
        if (ELF64_ST_TYPE(s.st_info) != type || s.st_shndx == SHN_UNDEF) continue;
        if (value < s.st_value || value >= s.st_value + s.st_size) continue;
        const uint64_t name = names.sh_offset + s.st_name;
        if (name < file.size()) return demangled(std::string(file.substr(name, file.find('\0', name) - name)).c_str());
      }
    }
  }
  return {};
}

/// Whether an address lies in what a program or library has loaded from its file and may be read.
bool in_loaded_file(uint64_t address, size_t bytes) {
  struct Question {
    uint64_t from, to;
    bool yes;
  } q{address, address + bytes, false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& asked = *static_cast<Question*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& p = info->dlpi_phdr[i];
          const uint64_t begin = info->dlpi_addr + p.p_vaddr;
          if (p.p_type == PT_LOAD && (p.p_flags & PF_R) && asked.from >= begin && asked.to <= begin + p.p_memsz)
            asked.yes = true;
        }
        return asked.yes ? 1 : 0;
      },
      &q);
  return q.yes;
}

void add_bases(const std::type_info* type, std::vector<std::string>& to) {
  if (to.size() > 50) return;
  if (const auto* one = dynamic_cast<const abi::__si_class_type_info*>(type)) {
    to.push_back(demangled(one->__base_type->name()));
    add_bases(one->__base_type, to);
  } else if (const auto* many = dynamic_cast<const abi::__vmi_class_type_info*>(type)) {
    for (unsigned i = 0; i < many->__base_count; ++i) {
      to.push_back(demangled(many->__base_info[i].__base_type->name()));
      add_bases(many->__base_info[i].__base_type, to);
    }
  }
}

/// What stands in a list of arguments before its first comma, brackets counted.
std::string first_argument(const std::string& text, size_t from) {
  int depth = 0;
  for (size_t i = from; i < text.size(); ++i) {
    if (text[i] == '<' || text[i] == '(') ++depth;
    if (depth == 0 && (text[i] == ',' || text[i] == '>')) return text.substr(from, i - from);
    if (text[i] == '>' || text[i] == ')') --depth;
  }
  return text.substr(from);
}

}  // namespace

std::string variable_at(const StaticMemory& of, uint64_t address) {
  try {
    const auto file = MappedFile::open(of.file);
    return symbol_in(file->bytes(), address - of.base, of.of_thread ? STT_TLS : STT_OBJECT);
  } catch (const Error&) {
    return {};  // its file is gone
  }
}

bool ObjectClass::is_a(const std::string& base) const {
  return name == base || std::find(bases.begin(), bases.end(), base) != bases.end();
}

ObjectClass class_of_object(uint64_t table) {
  // In front of a table: the place of the object in the whole (0 of a whole one), and its class.
  if (table % 8 != 0 || table < 16 || !in_loaded_file(table - 16, 24)) return {};
  int64_t place = 0;
  uint64_t info = 0, class_of_info = 0, name = 0;
  std::memcpy(&place, reinterpret_cast<const void*>(table - 16), 8);
  std::memcpy(&info, reinterpret_cast<const void*>(table - 8), 8);
  if (place > 0 || place < -65536 || info % 8 != 0 || !in_loaded_file(info, 16)) return {};
  std::memcpy(&class_of_info, reinterpret_cast<const void*>(info), 8);
  std::memcpy(&name, reinterpret_cast<const void*>(info + 8), 8);
  // A class is described by an object of one of these three, each of which has its own table.
  static const std::array<uint64_t, 3> kinds = [] {
    struct Alone {
      virtual ~Alone() = default;
    };
    struct Of : Alone {};
    struct Other {
      virtual ~Other() = default;
    };
    struct OfTwo : Alone, Other {};
    std::array<uint64_t, 3> all{};
    size_t n = 0;
    for (const std::type_info* t : {&typeid(Alone), &typeid(Of), &typeid(OfTwo)})
      std::memcpy(&all[n++], static_cast<const void*>(t), 8);
    return all;
  }();
  if (std::find(kinds.begin(), kinds.end(), class_of_info) == kinds.end() || !in_loaded_file(name, 1)) return {};
  const auto* type = reinterpret_cast<const std::type_info*>(info);
  ObjectClass c{demangled(type->name()), {}};
  add_bases(type, c.bases);
  return c;
}

std::string short_class(const std::string& name) {
  for (const char* around : {"std::_Sp_counted_ptr_inplace<", "std::_Sp_counted_ptr<", "std::_Sp_counted_deleter<"})
    if (name.starts_with(around)) {
      std::string inner = first_argument(name, std::strlen(around));
      if (inner.ends_with("*")) inner.pop_back();
      return short_class(inner);
    }
  std::string text = name;
  const auto take_out = [&](const std::string& what, const std::string& instead) {
    for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += instead.size())
      text.replace(at, what.size(), instead);
  };
  take_out("(anonymous namespace)::", "");
  take_out("std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string");
  take_out(" >", ">");
  for (size_t at; (at = text.find(", std::allocator<")) != text.npos;) {
    const std::string inner = first_argument(text, at + std::strlen(", std::allocator<"));
    size_t end = at + std::strlen(", std::allocator<") + inner.size() + 1;  // behind its '>'
    text.erase(at, end - at);
  }
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace tenon
