// Where the sources and the examples are: a test may run on another machine than the one that it was built on.
#ifndef TFC_TESTS_COMMON_SOURCE_H
#define TFC_TESTS_COMMON_SOURCE_H

// TFC_SOURCE_ROOT of the environment, else the folder that it was built from.
const char *test_source_dir(void);

#endif
