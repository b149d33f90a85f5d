// The messages that graph files consist of: number, name and type of each field. A type in lower case is a scalar,
// "@Name" an enumeration, any other one a message (map entries are messages with a key and a value).
#include "runtime/graph/text_schema.h"

static const struct tfc_text_field savedModel_fields[] = {{1, "saved_model_schema_version", "int64"},
                                                          {2, "meta_graphs", "MetaGraphDef"}};
static const struct tfc_text_field metaGraphDef_fields[] = {{1, "meta_info_def", "MetaGraphDefMetaInfoDef"},
                                                            {2, "graph_def", "GraphDef"},
                                                            {3, "saver_def", "SaverDef"},
                                                            {4, "collection_def", "MetaGraphDefCollectionDefEntry"},
                                                            {5, "signature_def", "MetaGraphDefSignatureDefEntry"},
                                                            {6, "asset_file_def", "AssetFileDef"},
                                                            {7, "object_graph_def", "SavedObjectGraph"}};
static const struct tfc_text_field metaGraphDefMetaInfoDef_fields[] = {
    {1, "meta_graph_version", "string"},
    {2, "stripped_op_list", "OpList"},
    {3, "any_info", "Any"},
    {4, "tags", "string"},
    {5, "tensorflow_version", "string"},
    {6, "tensorflow_git_version", "string"},
    {7, "stripped_default_attrs", "bool"},
    {8, "function_aliases", "MetaGraphDefMetaInfoDefFunctionAliasesEntry"}};
static const struct tfc_text_field opList_fields[] = {{1, "op", "OpDef"}};
static const struct tfc_text_field opDef_fields[] = {{1, "name", "string"},
                                                     {2, "input_arg", "OpDefArgDef"},
                                                     {3, "output_arg", "OpDefArgDef"},
                                                     {20, "control_output", "string"},
                                                     {4, "attr", "OpDefAttrDef"},
                                                     {8, "deprecation", "OpDeprecation"},
                                                     {5, "summary", "string"},
                                                     {6, "description", "string"},
                                                     {18, "is_commutative", "bool"},
                                                     {16, "is_aggregate", "bool"},
                                                     {17, "is_stateful", "bool"},
                                                     {19, "allows_uninitialized_input", "bool"},
                                                     {21, "is_distributed_communication", "bool"}};
static const struct tfc_text_field opDefArgDef_fields[] = {{1, "name", "string"},
                                                           {2, "description", "string"},
                                                           {3, "type", "@DataType"},
                                                           {4, "type_attr", "string"},
                                                           {5, "number_attr", "string"},
                                                           {6, "type_list_attr", "string"},
                                                           {7, "handle_data", "ResourceHandleProtoDtypeAndShape"},
                                                           {16, "is_ref", "bool"},
                                                           {17, "experimental_full_type", "FullTypeDef"}};
static const struct tfc_text_field resourceHandleProtoDtypeAndShape_fields[] = {{1, "dtype", "@DataType"},
                                                                                {2, "shape", "TensorShapeProto"}};
static const struct tfc_text_field tensorShapeProto_fields[] = {{2, "dim", "TensorShapeProtoDim"},
                                                                {3, "unknown_rank", "bool"}};
static const struct tfc_text_field tensorShapeProtoDim_fields[] = {{1, "size", "int64"}, {2, "name", "string"}};
static const struct tfc_text_field fullTypeDef_fields[] = {
    {1, "type_id", "@FullTypeId"}, {2, "args", "FullTypeDef"}, {3, "s", "string"}, {4, "i", "int64"}};
static const struct tfc_text_field opDefAttrDef_fields[] = {{1, "name", "string"},
                                                            {2, "type", "string"},
                                                            {3, "default_value", "AttrValue"},
                                                            {4, "description", "string"},
                                                            {5, "has_minimum", "bool"},
                                                            {6, "minimum", "int64"},
                                                            {7, "allowed_values", "AttrValue"}};
static const struct tfc_text_field attrValue_fields[] = {{2, "s", "string"},
                                                         {3, "i", "int64"},
                                                         {4, "f", "float"},
                                                         {5, "b", "bool"},
                                                         {6, "type", "@DataType"},
                                                         {7, "shape", "TensorShapeProto"},
                                                         {8, "tensor", "TensorProto"},
                                                         {1, "list", "AttrValueListValue"},
                                                         {10, "func", "NameAttrList"},
                                                         {9, "placeholder", "string"}};
static const struct tfc_text_field tensorProto_fields[] = {{1, "dtype", "@DataType"},
                                                           {2, "tensor_shape", "TensorShapeProto"},
                                                           {3, "version_number", "int32"},
                                                           {4, "tensor_content", "string"},
                                                           {13, "half_val", "int32"},
                                                           {5, "float_val", "float"},
                                                           {6, "double_val", "double"},
                                                           {7, "int_val", "int32"},
                                                           {8, "string_val", "string"},
                                                           {9, "scomplex_val", "float"},
                                                           {10, "int64_val", "int64"},
                                                           {11, "bool_val", "bool"},
                                                           {12, "dcomplex_val", "double"},
                                                           {14, "resource_handle_val", "ResourceHandleProto"},
                                                           {15, "variant_val", "VariantTensorDataProto"},
                                                           {16, "uint32_val", "uint32"},
                                                           {17, "uint64_val", "uint64"},
                                                           {18, "float8_val", "string"}};
static const struct tfc_text_field resourceHandleProto_fields[] = {
    {1, "device", "string"},
    {2, "container", "string"},
    {3, "name", "string"},
    {4, "hash_code", "uint64"},
    {5, "maybe_type_name", "string"},
    {6, "dtypes_and_shapes", "ResourceHandleProtoDtypeAndShape"}};
static const struct tfc_text_field variantTensorDataProto_fields[] = {
    {1, "type_name", "string"}, {2, "metadata", "string"}, {3, "tensors", "TensorProto"}};
static const struct tfc_text_field attrValueListValue_fields[] = {{2, "s", "string"},
                                                                  {3, "i", "int64"},
                                                                  {4, "f", "float"},
                                                                  {5, "b", "bool"},
                                                                  {6, "type", "@DataType"},
                                                                  {7, "shape", "TensorShapeProto"},
                                                                  {8, "tensor", "TensorProto"},
                                                                  {9, "func", "NameAttrList"}};
static const struct tfc_text_field nameAttrList_fields[] = {{1, "name", "string"},
                                                            {2, "attr", "NameAttrListAttrEntry"}};
static const struct tfc_text_field nameAttrListAttrEntry_fields[] = {{1, "key", "string"}, {2, "value", "AttrValue"}};
static const struct tfc_text_field opDeprecation_fields[] = {{1, "version", "int32"}, {2, "explanation", "string"}};
static const struct tfc_text_field any_fields[] = {{1, "type_url", "string"}, {2, "value", "string"}};
static const struct tfc_text_field metaGraphDefMetaInfoDefFunctionAliasesEntry_fields[] = {{1, "key", "string"},
                                                                                           {2, "value", "string"}};
static const struct tfc_text_field graphDef_fields[] = {{1, "node", "NodeDef"},
                                                        {4, "versions", "VersionDef"},
                                                        {3, "version", "int32"},
                                                        {2, "library", "FunctionDefLibrary"},
                                                        {5, "debug_info", "GraphDebugInfo"}};
static const struct tfc_text_field nodeDef_fields[] = {{1, "name", "string"},
                                                       {2, "op", "string"},
                                                       {3, "input", "string"},
                                                       {4, "device", "string"},
                                                       {5, "attr", "NodeDefAttrEntry"},
                                                       {6, "experimental_debug_info", "NodeDefExperimentalDebugInfo"},
                                                       {7, "experimental_type", "FullTypeDef"}};
static const struct tfc_text_field nodeDefAttrEntry_fields[] = {{1, "key", "string"}, {2, "value", "AttrValue"}};
static const struct tfc_text_field nodeDefExperimentalDebugInfo_fields[] = {{1, "original_node_names", "string"},
                                                                            {2, "original_func_names", "string"}};
static const struct tfc_text_field versionDef_fields[] = {
    {1, "producer", "int32"}, {2, "min_consumer", "int32"}, {3, "bad_consumers", "int32"}};
static const struct tfc_text_field functionDefLibrary_fields[] = {
    {1, "function", "FunctionDef"}, {2, "gradient", "GradientDef"}, {3, "registered_gradients", "RegisteredGradient"}};
static const struct tfc_text_field functionDef_fields[] = {
    {1, "signature", "OpDef"},
    {5, "attr", "FunctionDefAttrEntry"},
    {7, "arg_attr", "FunctionDefArgAttrEntry"},
    {8, "resource_arg_unique_id", "FunctionDefResourceArgUniqueIdEntry"},
    {3, "node_def", "NodeDef"},
    {4, "ret", "FunctionDefRetEntry"},
    {6, "control_ret", "FunctionDefControlRetEntry"}};
static const struct tfc_text_field functionDefAttrEntry_fields[] = {{1, "key", "string"}, {2, "value", "AttrValue"}};
static const struct tfc_text_field functionDefArgAttrEntry_fields[] = {{1, "key", "uint32"},
                                                                       {2, "value", "FunctionDefArgAttrs"}};
static const struct tfc_text_field functionDefArgAttrs_fields[] = {{1, "attr", "FunctionDefArgAttrsAttrEntry"}};
static const struct tfc_text_field functionDefArgAttrsAttrEntry_fields[] = {{1, "key", "string"},
                                                                            {2, "value", "AttrValue"}};
static const struct tfc_text_field functionDefResourceArgUniqueIdEntry_fields[] = {{1, "key", "uint32"},
                                                                                   {2, "value", "uint32"}};
static const struct tfc_text_field functionDefRetEntry_fields[] = {{1, "key", "string"}, {2, "value", "string"}};
static const struct tfc_text_field functionDefControlRetEntry_fields[] = {{1, "key", "string"}, {2, "value", "string"}};
static const struct tfc_text_field gradientDef_fields[] = {{1, "function_name", "string"},
                                                           {2, "gradient_func", "string"}};
static const struct tfc_text_field registeredGradient_fields[] = {{1, "gradient_func", "string"},
                                                                  {2, "registered_op_type", "string"}};
static const struct tfc_text_field graphDebugInfo_fields[] = {
    {1, "files", "string"},
    {4, "frames_by_id", "GraphDebugInfoFramesByIdEntry"},
    {6, "traces_by_id", "GraphDebugInfoTracesByIdEntry"},
    {2, "traces", "GraphDebugInfoTracesEntry"},
    {5, "name_to_trace_id", "GraphDebugInfoNameToTraceIdEntry"}};
static const struct tfc_text_field graphDebugInfoFramesByIdEntry_fields[] = {{1, "key", "fixed64"},
                                                                             {2, "value", "GraphDebugInfoFileLineCol"}};
static const struct tfc_text_field graphDebugInfoFileLineCol_fields[] = {{1, "file_index", "int32"},
                                                                         {2, "line", "int32"},
                                                                         {3, "col", "int32"},
                                                                         {4, "func", "string"},
                                                                         {5, "code", "string"}};
static const struct tfc_text_field graphDebugInfoTracesByIdEntry_fields[] = {{1, "key", "fixed64"},
                                                                             {2, "value", "GraphDebugInfoStackTrace"}};
static const struct tfc_text_field graphDebugInfoStackTrace_fields[] = {
    {1, "file_line_cols", "GraphDebugInfoFileLineCol"}, {2, "frame_id", "fixed64"}};
static const struct tfc_text_field graphDebugInfoTracesEntry_fields[] = {{1, "key", "string"},
                                                                         {2, "value", "GraphDebugInfoStackTrace"}};
static const struct tfc_text_field graphDebugInfoNameToTraceIdEntry_fields[] = {{1, "key", "string"},
                                                                                {2, "value", "fixed64"}};
static const struct tfc_text_field saverDef_fields[] = {{1, "filename_tensor_name", "string"},
                                                        {2, "save_tensor_name", "string"},
                                                        {3, "restore_op_name", "string"},
                                                        {4, "max_to_keep", "int32"},
                                                        {5, "sharded", "bool"},
                                                        {6, "keep_checkpoint_every_n_hours", "float"},
                                                        {7, "version", "@SaverDefCheckpointFormatVersion"}};
static const struct tfc_text_field metaGraphDefCollectionDefEntry_fields[] = {{1, "key", "string"},
                                                                              {2, "value", "CollectionDef"}};
static const struct tfc_text_field collectionDef_fields[] = {{1, "node_list", "CollectionDefNodeList"},
                                                             {2, "bytes_list", "CollectionDefBytesList"},
                                                             {3, "int64_list", "CollectionDefInt64List"},
                                                             {4, "float_list", "CollectionDefFloatList"},
                                                             {5, "any_list", "CollectionDefAnyList"}};
static const struct tfc_text_field collectionDefNodeList_fields[] = {{1, "value", "string"}};
static const struct tfc_text_field collectionDefBytesList_fields[] = {{1, "value", "string"}};
static const struct tfc_text_field collectionDefInt64List_fields[] = {{1, "value", "int64"}};
static const struct tfc_text_field collectionDefFloatList_fields[] = {{1, "value", "float"}};
static const struct tfc_text_field collectionDefAnyList_fields[] = {{1, "value", "Any"}};
static const struct tfc_text_field metaGraphDefSignatureDefEntry_fields[] = {{1, "key", "string"},
                                                                             {2, "value", "SignatureDef"}};
static const struct tfc_text_field signatureDef_fields[] = {{1, "inputs", "SignatureDefInputsEntry"},
                                                            {2, "outputs", "SignatureDefOutputsEntry"},
                                                            {3, "method_name", "string"},
                                                            {4, "defaults", "SignatureDefDefaultsEntry"}};
static const struct tfc_text_field signatureDefInputsEntry_fields[] = {{1, "key", "string"},
                                                                       {2, "value", "TensorInfo"}};
static const struct tfc_text_field tensorInfo_fields[] = {{1, "name", "string"},
                                                          {4, "coo_sparse", "TensorInfoCooSparse"},
                                                          {5, "composite_tensor", "TensorInfoCompositeTensor"},
                                                          {2, "dtype", "@DataType"},
                                                          {3, "tensor_shape", "TensorShapeProto"}};
static const struct tfc_text_field tensorInfoCooSparse_fields[] = {{1, "values_tensor_name", "string"},
                                                                   {2, "indices_tensor_name", "string"},
                                                                   {3, "dense_shape_tensor_name", "string"}};
static const struct tfc_text_field tensorInfoCompositeTensor_fields[] = {{1, "type_spec", "TypeSpecProto"},
                                                                         {2, "components", "TensorInfo"}};
static const struct tfc_text_field typeSpecProto_fields[] = {{1, "type_spec_class", "@TypeSpecProtoTypeSpecClass"},
                                                             {2, "type_state", "StructuredValue"},
                                                             {3, "type_spec_class_name", "string"},
                                                             {4, "num_flat_components", "int32"}};
static const struct tfc_text_field structuredValue_fields[] = {
    {1, "none_value", "NoneValue"},
    {11, "float64_value", "double"},
    {12, "int64_value", "sint64"},
    {13, "string_value", "string"},
    {14, "bool_value", "bool"},
    {31, "tensor_shape_value", "TensorShapeProto"},
    {32, "tensor_dtype_value", "@DataType"},
    {33, "tensor_spec_value", "TensorSpecProto"},
    {34, "type_spec_value", "TypeSpecProto"},
    {35, "bounded_tensor_spec_value", "BoundedTensorSpecProto"},
    {51, "list_value", "ListValue"},
    {52, "tuple_value", "TupleValue"},
    {53, "dict_value", "DictValue"},
    {54, "named_tuple_value", "NamedTupleValue"},
    {55, "tensor_value", "TensorProto"},
    {56, "numpy_value", "TensorProto"}};
static const struct tfc_text_field tensorSpecProto_fields[] = {
    {1, "name", "string"}, {2, "shape", "TensorShapeProto"}, {3, "dtype", "@DataType"}};
static const struct tfc_text_field boundedTensorSpecProto_fields[] = {{1, "name", "string"},
                                                                      {2, "shape", "TensorShapeProto"},
                                                                      {3, "dtype", "@DataType"},
                                                                      {4, "minimum", "TensorProto"},
                                                                      {5, "maximum", "TensorProto"}};
static const struct tfc_text_field listValue_fields[] = {{1, "values", "StructuredValue"}};
static const struct tfc_text_field tupleValue_fields[] = {{1, "values", "StructuredValue"}};
static const struct tfc_text_field dictValue_fields[] = {{1, "fields", "DictValueFieldsEntry"}};
static const struct tfc_text_field dictValueFieldsEntry_fields[] = {{1, "key", "string"},
                                                                    {2, "value", "StructuredValue"}};
static const struct tfc_text_field namedTupleValue_fields[] = {{1, "name", "string"}, {2, "values", "PairValue"}};
static const struct tfc_text_field pairValue_fields[] = {{1, "key", "string"}, {2, "value", "StructuredValue"}};
static const struct tfc_text_field signatureDefOutputsEntry_fields[] = {{1, "key", "string"},
                                                                        {2, "value", "TensorInfo"}};
static const struct tfc_text_field signatureDefDefaultsEntry_fields[] = {{1, "key", "string"},
                                                                         {2, "value", "TensorProto"}};
static const struct tfc_text_field assetFileDef_fields[] = {{1, "tensor_info", "TensorInfo"},
                                                            {2, "filename", "string"}};
static const struct tfc_text_field savedObjectGraph_fields[] = {
    {1, "nodes", "SavedObject"}, {2, "concrete_functions", "SavedObjectGraphConcreteFunctionsEntry"}};
static const struct tfc_text_field savedObject_fields[] = {
    {1, "children", "TrackableObjectGraphTrackableObjectObjectReference"},
    {15, "dependencies", "TrackableObjectGraphTrackableObjectObjectReference"},
    {3, "slot_variables", "TrackableObjectGraphTrackableObjectSlotVariableReference"},
    {4, "user_object", "SavedUserObject"},
    {5, "asset", "SavedAsset"},
    {6, "function", "SavedFunction"},
    {7, "variable", "SavedVariable"},
    {8, "bare_concrete_function", "SavedBareConcreteFunction"},
    {9, "constant", "SavedConstant"},
    {10, "resource", "SavedResource"},
    {12, "captured_tensor", "CapturedTensor"},
    {11, "saveable_objects", "SavedObjectSaveableObjectsEntry"},
    {13, "registered_name", "string"},
    {14, "serialized_user_proto", "Any"},
    {16, "registered_saver", "string"}};
static const struct tfc_text_field trackableObjectGraphTrackableObjectObjectReference_fields[] = {
    {1, "node_id", "int32"}, {2, "local_name", "string"}};
static const struct tfc_text_field trackableObjectGraphTrackableObjectSlotVariableReference_fields[] = {
    {1, "original_variable_node_id", "int32"}, {2, "slot_name", "string"}, {3, "slot_variable_node_id", "int32"}};
static const struct tfc_text_field savedUserObject_fields[] = {
    {1, "identifier", "string"}, {2, "version", "VersionDef"}, {3, "metadata", "string"}};
static const struct tfc_text_field savedAsset_fields[] = {{1, "asset_file_def_index", "int32"}};
static const struct tfc_text_field savedFunction_fields[] = {{1, "concrete_functions", "string"},
                                                             {2, "function_spec", "FunctionSpec"}};
static const struct tfc_text_field functionSpec_fields[] = {{1, "fullargspec", "StructuredValue"},
                                                            {2, "is_method", "bool"},
                                                            {5, "input_signature", "StructuredValue"},
                                                            {6, "jit_compile", "@FunctionSpecJitCompile"}};
static const struct tfc_text_field savedVariable_fields[] = {
    {1, "dtype", "@DataType"},
    {2, "shape", "TensorShapeProto"},
    {3, "trainable", "bool"},
    {4, "synchronization", "@VariableSynchronization"},
    {5, "aggregation", "@VariableAggregation"},
    {6, "name", "string"},
    {7, "device", "string"},
    {8, "experimental_distributed_variable_components", "SavedVariable"}};
static const struct tfc_text_field savedBareConcreteFunction_fields[] = {{1, "concrete_function_name", "string"},
                                                                         {2, "argument_keywords", "string"},
                                                                         {3, "allowed_positional_arguments", "int64"},
                                                                         {4, "function_spec", "FunctionSpec"}};
static const struct tfc_text_field savedConstant_fields[] = {{1, "operation", "string"}};
static const struct tfc_text_field savedResource_fields[] = {{1, "device", "string"}};
static const struct tfc_text_field capturedTensor_fields[] = {{1, "name", "string"},
                                                              {2, "concrete_function", "string"}};
static const struct tfc_text_field savedObjectSaveableObjectsEntry_fields[] = {{1, "key", "string"},
                                                                               {2, "value", "SaveableObject"}};
static const struct tfc_text_field saveableObject_fields[] = {{2, "save_function", "int32"},
                                                              {3, "restore_function", "int32"}};
static const struct tfc_text_field savedObjectGraphConcreteFunctionsEntry_fields[] = {
    {1, "key", "string"}, {2, "value", "SavedConcreteFunction"}};
static const struct tfc_text_field savedConcreteFunction_fields[] = {
    {2, "bound_inputs", "int32"},
    {3, "canonicalized_input_signature", "StructuredValue"},
    {4, "output_signature", "StructuredValue"}};
const struct tfc_text_message tfc_text_messages[] = {
    {"SavedModel", savedModel_fields, 2},
    {"MetaGraphDef", metaGraphDef_fields, 7},
    {"MetaGraphDefMetaInfoDef", metaGraphDefMetaInfoDef_fields, 8},
    {"OpList", opList_fields, 1},
    {"OpDef", opDef_fields, 13},
    {"OpDefArgDef", opDefArgDef_fields, 9},
    {"ResourceHandleProtoDtypeAndShape", resourceHandleProtoDtypeAndShape_fields, 2},
    {"TensorShapeProto", tensorShapeProto_fields, 2},
    {"TensorShapeProtoDim", tensorShapeProtoDim_fields, 2},
    {"FullTypeDef", fullTypeDef_fields, 4},
    {"OpDefAttrDef", opDefAttrDef_fields, 7},
    {"AttrValue", attrValue_fields, 10},
    {"TensorProto", tensorProto_fields, 18},
    {"ResourceHandleProto", resourceHandleProto_fields, 6},
    {"VariantTensorDataProto", variantTensorDataProto_fields, 3},
    {"AttrValueListValue", attrValueListValue_fields, 8},
    {"NameAttrList", nameAttrList_fields, 2},
    {"NameAttrListAttrEntry", nameAttrListAttrEntry_fields, 2},
    {"OpDeprecation", opDeprecation_fields, 2},
    {"Any", any_fields, 2},
    {"MetaGraphDefMetaInfoDefFunctionAliasesEntry", metaGraphDefMetaInfoDefFunctionAliasesEntry_fields, 2},
    {"GraphDef", graphDef_fields, 5},
    {"NodeDef", nodeDef_fields, 7},
    {"NodeDefAttrEntry", nodeDefAttrEntry_fields, 2},
    {"NodeDefExperimentalDebugInfo", nodeDefExperimentalDebugInfo_fields, 2},
    {"VersionDef", versionDef_fields, 3},
    {"FunctionDefLibrary", functionDefLibrary_fields, 3},
    {"FunctionDef", functionDef_fields, 7},
    {"FunctionDefAttrEntry", functionDefAttrEntry_fields, 2},
    {"FunctionDefArgAttrEntry", functionDefArgAttrEntry_fields, 2},
    {"FunctionDefArgAttrs", functionDefArgAttrs_fields, 1},
    {"FunctionDefArgAttrsAttrEntry", functionDefArgAttrsAttrEntry_fields, 2},
    {"FunctionDefResourceArgUniqueIdEntry", functionDefResourceArgUniqueIdEntry_fields, 2},
    {"FunctionDefRetEntry", functionDefRetEntry_fields, 2},
    {"FunctionDefControlRetEntry", functionDefControlRetEntry_fields, 2},
    {"GradientDef", gradientDef_fields, 2},
    {"RegisteredGradient", registeredGradient_fields, 2},
    {"GraphDebugInfo", graphDebugInfo_fields, 5},
    {"GraphDebugInfoFramesByIdEntry", graphDebugInfoFramesByIdEntry_fields, 2},
    {"GraphDebugInfoFileLineCol", graphDebugInfoFileLineCol_fields, 5},
    {"GraphDebugInfoTracesByIdEntry", graphDebugInfoTracesByIdEntry_fields, 2},
    {"GraphDebugInfoStackTrace", graphDebugInfoStackTrace_fields, 2},
    {"GraphDebugInfoTracesEntry", graphDebugInfoTracesEntry_fields, 2},
    {"GraphDebugInfoNameToTraceIdEntry", graphDebugInfoNameToTraceIdEntry_fields, 2},
    {"SaverDef", saverDef_fields, 7},
    {"MetaGraphDefCollectionDefEntry", metaGraphDefCollectionDefEntry_fields, 2},
    {"CollectionDef", collectionDef_fields, 5},
    {"CollectionDefNodeList", collectionDefNodeList_fields, 1},
    {"CollectionDefBytesList", collectionDefBytesList_fields, 1},
    {"CollectionDefInt64List", collectionDefInt64List_fields, 1},
    {"CollectionDefFloatList", collectionDefFloatList_fields, 1},
    {"CollectionDefAnyList", collectionDefAnyList_fields, 1},
    {"MetaGraphDefSignatureDefEntry", metaGraphDefSignatureDefEntry_fields, 2},
    {"SignatureDef", signatureDef_fields, 4},
    {"SignatureDefInputsEntry", signatureDefInputsEntry_fields, 2},
    {"TensorInfo", tensorInfo_fields, 5},
    {"TensorInfoCooSparse", tensorInfoCooSparse_fields, 3},
    {"TensorInfoCompositeTensor", tensorInfoCompositeTensor_fields, 2},
    {"TypeSpecProto", typeSpecProto_fields, 4},
    {"StructuredValue", structuredValue_fields, 16},
    {"NoneValue", NULL, 0},
    {"TensorSpecProto", tensorSpecProto_fields, 3},
    {"BoundedTensorSpecProto", boundedTensorSpecProto_fields, 5},
    {"ListValue", listValue_fields, 1},
    {"TupleValue", tupleValue_fields, 1},
    {"DictValue", dictValue_fields, 1},
    {"DictValueFieldsEntry", dictValueFieldsEntry_fields, 2},
    {"NamedTupleValue", namedTupleValue_fields, 2},
    {"PairValue", pairValue_fields, 2},
    {"SignatureDefOutputsEntry", signatureDefOutputsEntry_fields, 2},
    {"SignatureDefDefaultsEntry", signatureDefDefaultsEntry_fields, 2},
    {"AssetFileDef", assetFileDef_fields, 2},
    {"SavedObjectGraph", savedObjectGraph_fields, 2},
    {"SavedObject", savedObject_fields, 15},
    {"TrackableObjectGraphTrackableObjectObjectReference", trackableObjectGraphTrackableObjectObjectReference_fields,
     2},
    {"TrackableObjectGraphTrackableObjectSlotVariableReference",
     trackableObjectGraphTrackableObjectSlotVariableReference_fields, 3},
    {"SavedUserObject", savedUserObject_fields, 3},
    {"SavedAsset", savedAsset_fields, 1},
    {"SavedFunction", savedFunction_fields, 2},
    {"FunctionSpec", functionSpec_fields, 4},
    {"SavedVariable", savedVariable_fields, 8},
    {"SavedBareConcreteFunction", savedBareConcreteFunction_fields, 4},
    {"SavedConstant", savedConstant_fields, 1},
    {"SavedResource", savedResource_fields, 1},
    {"CapturedTensor", capturedTensor_fields, 2},
    {"SavedObjectSaveableObjectsEntry", savedObjectSaveableObjectsEntry_fields, 2},
    {"SaveableObject", saveableObject_fields, 2},
    {"SavedObjectGraphConcreteFunctionsEntry", savedObjectGraphConcreteFunctionsEntry_fields, 2},
    {"SavedConcreteFunction", savedConcreteFunction_fields, 3},
};
const size_t tfc_text_message_count = sizeof tfc_text_messages / sizeof *tfc_text_messages;

const struct tfc_text_enum tfc_text_enums[] = {
    {"FullTypeId", "TFT_UNSET", 0},
    {"FullTypeId", "TFT_VAR", 1},
    {"FullTypeId", "TFT_ANY", 2},
    {"FullTypeId", "TFT_PRODUCT", 3},
    {"FullTypeId", "TFT_NAMED", 4},
    {"FullTypeId", "TFT_FOR_EACH", 20},
    {"FullTypeId", "TFT_CALLABLE", 100},
    {"FullTypeId", "TFT_TENSOR", 1000},
    {"FullTypeId", "TFT_ARRAY", 1001},
    {"FullTypeId", "TFT_OPTIONAL", 1002},
    {"FullTypeId", "TFT_LITERAL", 1003},
    {"FullTypeId", "TFT_ENCODED", 1004},
    {"FullTypeId", "TFT_SHAPE_TENSOR", 1005},
    {"FullTypeId", "TFT_BOOL", 200},
    {"FullTypeId", "TFT_UINT8", 201},
    {"FullTypeId", "TFT_UINT16", 202},
    {"FullTypeId", "TFT_UINT32", 203},
    {"FullTypeId", "TFT_UINT64", 204},
    {"FullTypeId", "TFT_INT8", 205},
    {"FullTypeId", "TFT_INT16", 206},
    {"FullTypeId", "TFT_INT32", 207},
    {"FullTypeId", "TFT_INT64", 208},
    {"FullTypeId", "TFT_HALF", 209},
    {"FullTypeId", "TFT_FLOAT", 210},
    {"FullTypeId", "TFT_DOUBLE", 211},
    {"FullTypeId", "TFT_BFLOAT16", 215},
    {"FullTypeId", "TFT_COMPLEX64", 212},
    {"FullTypeId", "TFT_COMPLEX128", 213},
    {"FullTypeId", "TFT_STRING", 214},
    {"FullTypeId", "TFT_DATASET", 10102},
    {"FullTypeId", "TFT_RAGGED", 10103},
    {"FullTypeId", "TFT_ITERATOR", 10104},
    {"FullTypeId", "TFT_MUTEX_LOCK", 10202},
    {"FullTypeId", "TFT_LEGACY_VARIANT", 10203},
    {"SaverDefCheckpointFormatVersion", "LEGACY", 0},
    {"SaverDefCheckpointFormatVersion", "V1", 1},
    {"SaverDefCheckpointFormatVersion", "V2", 2},
    {"TypeSpecProtoTypeSpecClass", "UNKNOWN", 0},
    {"TypeSpecProtoTypeSpecClass", "SPARSE_TENSOR_SPEC", 1},
    {"TypeSpecProtoTypeSpecClass", "INDEXED_SLICES_SPEC", 2},
    {"TypeSpecProtoTypeSpecClass", "RAGGED_TENSOR_SPEC", 3},
    {"TypeSpecProtoTypeSpecClass", "TENSOR_ARRAY_SPEC", 4},
    {"TypeSpecProtoTypeSpecClass", "DATA_DATASET_SPEC", 5},
    {"TypeSpecProtoTypeSpecClass", "DATA_ITERATOR_SPEC", 6},
    {"TypeSpecProtoTypeSpecClass", "OPTIONAL_SPEC", 7},
    {"TypeSpecProtoTypeSpecClass", "PER_REPLICA_SPEC", 8},
    {"TypeSpecProtoTypeSpecClass", "VARIABLE_SPEC", 9},
    {"TypeSpecProtoTypeSpecClass", "ROW_PARTITION_SPEC", 10},
    {"TypeSpecProtoTypeSpecClass", "REGISTERED_TYPE_SPEC", 12},
    {"TypeSpecProtoTypeSpecClass", "EXTENSION_TYPE_SPEC", 13},
    {"FunctionSpecJitCompile", "DEFAULT", 0},
    {"FunctionSpecJitCompile", "ON", 1},
    {"FunctionSpecJitCompile", "OFF", 2},
    {"VariableSynchronization", "VARIABLE_SYNCHRONIZATION_AUTO", 0},
    {"VariableSynchronization", "VARIABLE_SYNCHRONIZATION_NONE", 1},
    {"VariableSynchronization", "VARIABLE_SYNCHRONIZATION_ON_WRITE", 2},
    {"VariableSynchronization", "VARIABLE_SYNCHRONIZATION_ON_READ", 3},
    {"VariableAggregation", "VARIABLE_AGGREGATION_NONE", 0},
    {"VariableAggregation", "VARIABLE_AGGREGATION_SUM", 1},
    {"VariableAggregation", "VARIABLE_AGGREGATION_MEAN", 2},
    {"VariableAggregation", "VARIABLE_AGGREGATION_ONLY_FIRST_REPLICA", 3},
};
const size_t tfc_text_enum_count = sizeof tfc_text_enums / sizeof *tfc_text_enums;
