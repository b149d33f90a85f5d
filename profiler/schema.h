// The schema of the database: tables, which only tfc uses, and views, which others read. docs/database.md describes it.
#ifndef TFC_PROFILER_SCHEMA_H
#define TFC_PROFILER_SCHEMA_H

#define TFC_SCHEMA_APPLICATION_ID 0x74666370 // "tfcp"
#define TFC_SCHEMA_VERSION 13

extern const char tfc_schema_tables[];     // of version TFC_SCHEMA_VERSION, for an empty database
extern const char tfc_schema_upgrade[];    // from version 1 to 2
extern const char tfc_schema_upgrade_2[];  // from version 2 to 3
extern const char tfc_schema_upgrade_4[];  // from version 4 to 5
extern const char tfc_schema_upgrade_5[];  // from version 5 to 6
extern const char tfc_schema_added[];      // since version 1; also added to databases of older versions
extern const char tfc_schema_upgrade_6[];  // from version 6 to 7, if table `work` lacks the column
extern const char tfc_schema_upgrade_11[]; // from version 11 to 12, if table `memory` lacks the column
extern const char tfc_schema_views[];      // dropped and made again with every version
extern const char tfc_schema_indexes[];    // created after a run if they do not exist

#endif
