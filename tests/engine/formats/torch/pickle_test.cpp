#include "engine/formats/torch/pickle.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tenon::formats {
namespace {

TEST(Pickle, WhatIsWrittenIsRead) {
  PickleWriter w;
  w.begin_dict();
  w.text("numbers");
  w.begin_list();
  for (int64_t v : {int64_t{0}, int64_t{255}, int64_t{256}, int64_t{-1}, int64_t{1} << 40, INT64_MIN}) w.integer(v);
  w.number(-0.5);
  w.none();
  w.boolean(true);
  w.end_list();
  w.text("long");
  w.text(std::string(1000, 'x'));
  w.end_dict();
  const Pickle v = read_pickle(w.finish());
  const auto& list = *v->list("numbers");
  ASSERT_EQ(list.size(), 9u);
  EXPECT_EQ(std::get<int64_t>(list[2]->value), 256);
  EXPECT_EQ(std::get<int64_t>(list[4]->value), int64_t{1} << 40);
  EXPECT_EQ(std::get<int64_t>(list[5]->value), INT64_MIN);
  EXPECT_EQ(std::get<double>(list[6]->value), -0.5);
  EXPECT_EQ(std::get<bool>(list[8]->value), true);
  EXPECT_EQ(v->text("long").size(), 1000u);
}

// pickle.dumps({"a": [1, (2, "b")], "c": None}, p) of CPython for p = 2 and 5.
TEST(Pickle, ReadsWhatPythonWrites) {
  static constexpr char kTwo[] =
      "\x80\x02}q\x00(X\x01\x00\x00\x00"
      "aq\x01]q\x02(K\x01K\x02X\x01\x00\x00\x00"
      "bq\x03\x86q\x04"
      "eX\x01\x00\x00\x00"
      "cq\x05Nu.";
  const std::string two(kTwo, sizeof kTwo - 1);
  const Pickle v = read_pickle(two);
  EXPECT_EQ(v->list("a")->size(), 2u);
  EXPECT_TRUE(v->find("c"));
}

TEST(Pickle, ValuesNestedMillionsDeepAreTakenApartAgain) {
  EXPECT_NO_THROW(read_pickle(std::string("\x80\x04)", 3) + std::string(2000000, '\x85') + "."));
  EXPECT_NO_THROW(
      read_pickle(std::string("\x80\x04", 2) + std::string(2000000, ']') + std::string(1999999, 'a') + "."));
}

TEST(Pickle, NothingIsEverRun) {
  std::string evil(
      "\x80\x02"
      "cos\nsystem\n(X\x02\x00\x00\x00"
      "lstR.",
      25);
  try {
    read_pickle(evil);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("nothing in it was run"), std::string::npos);
  }
}

TEST(Pickle, ObjectsAreNotedNotMade) {
  const Pickle v = read_pickle(std::string("\x80\x02"
                                           "cos\nsystem\n(X\x02\x00\x00\x00"
                                           "lstR}X\x01\x00\x00\x00"
                                           "aK\x01sb.",
                                           36),
                               PickleOf::objects);
  const PyValue::Object* o = v->object();
  ASSERT_TRUE(o);
  EXPECT_TRUE(o->calls("os", "system"));
  ASSERT_EQ(o->args->as<PyValue::List>()->size(), 1u);
  EXPECT_EQ(*o->args->as<PyValue::List>()->at(0)->as<std::string>(), "ls");
  EXPECT_EQ(o->state->integer("a"), 1);
}

TEST(Pickle, ValuesMayContainThemselves) {
  const Pickle v =
      read_pickle(std::string("\x80\x02]q\x00]q\x01h\x00"
                              "aa.",
                              13));
  const PyRef inner = v->as<PyValue::List>()->at(0);
  EXPECT_EQ(inner->as<PyValue::List>()->at(0)->as<PyValue::List>()->at(0), inner);
}

TEST(Pickle, SeveralMayFollowEachOther) {
  const Pickle v = read_pickle(std::string("\x80\x02K\x07.\x80\x02N.", 9));
  EXPECT_EQ(*v->as<int64_t>(), 7);
  EXPECT_EQ(v.bytes(), 5u);
}

TEST(Pickle, OpcodesThatRefuseAreNamed) {
  for (const char* body : {"P1\n.", "i1\n2\n.", "(o.", "\x82\x01.", "\x97.", "\xff."}) {
    EXPECT_THROW(read_pickle(std::string("\x80\x02") + body, PickleOf::objects), Error) << body;
  }
  EXPECT_THROW(read_pickle(std::string("\x80\x02)K\x01"
                                       "a.",
                                       6)),
               Error)
      << "appending to a tuple";
  EXPECT_THROW(read_pickle(std::string("\x80\x02K\x01(0.", 6)), Error) << "popping a value below the mark";
}

}  // namespace
}  // namespace tenon::formats
