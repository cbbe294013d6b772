#pragma once
#include "projects/database.h"

namespace tenon::projects {

inline constexpr int kApplicationId = 0x54656E6F;  // "Teno"
/// The version of the schema this program writes; PRAGMA user_version of every project.
int schema_version();
/// Files from this version on can be read as they are: later ones have tables more, and no other columns.
inline constexpr int kOldestReadable = 1;
/// The first version with sweeps.
inline constexpr int kSweepsSince = 2;

/// An empty database becomes a project of the current version.
void create_schema(Database& db);
/// The version of an open file; throws Error where it is no project, or one of a newer Tenon.
int check_schema(Database& db);
/// Brings an older project up to the current version, in one transaction.
void migrate_schema(Database& db, int from);

}  // namespace tenon::projects
