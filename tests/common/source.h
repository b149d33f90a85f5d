// Where the sources and the examples are: a test may run on another machine than the one that it was built on.
#ifndef TFC_TESTS_COMMON_SOURCE_H
#define TFC_TESTS_COMMON_SOURCE_H

// The value of TFC_SOURCE_ROOT in the environment, else the folder that the test was built from.
const char *test_source_dir(void);

#endif
