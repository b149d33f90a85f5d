// The database's schema: tables as tfc writes them, views as others read them. Described in docs/database.md.
#ifndef TFC_PROFILER_SCHEMA_H
#define TFC_PROFILER_SCHEMA_H

#define TFC_SCHEMA_APPLICATION_ID 0x74666370 // "tfcp"
#define TFC_SCHEMA_VERSION 7

extern const char tfc_schema_tables[]; // of version TFC_SCHEMA_VERSION, for an empty database
struct tfc_schema_part {               // lists end with a NULL name
  const char *name, *text;
};
struct tfc_schema_column {
  const char *table, *name, *type;
};
extern const struct tfc_schema_part tfc_schema_added[];     // tables since version 1: names and columns
extern const struct tfc_schema_column tfc_schema_columns[]; // columns since version 1, the last ones of their tables
extern const struct tfc_schema_part tfc_schema_views[];     // names and queries
extern const char tfc_schema_indexes[];                     // made after a run, if they are not there

#endif
