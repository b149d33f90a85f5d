// The schema of the messages in graph files, for converting them from and to text.
#ifndef TFC_RUNTIME_GRAPH_TEXT_SCHEMA_H
#define TFC_RUNTIME_GRAPH_TEXT_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

struct tfc_text_field {
  uint32_t number;
  const char *name, *type;
};
struct tfc_text_message {
  const char *name;
  const struct tfc_text_field *fields;
  size_t field_count;
};
struct tfc_text_enum { // for every enumeration except DataType, which is in runtime/graph/dtype.h
  const char *type, *name;
  int32_t number;
};
extern const struct tfc_text_message tfc_text_messages[];
extern const size_t tfc_text_message_count;
extern const struct tfc_text_enum tfc_text_enums[];
extern const size_t tfc_text_enum_count;

#endif
