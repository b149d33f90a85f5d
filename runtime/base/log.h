// The log. Libraries never print: they report through this sink, which the program sets once when it starts, before it
// creates threads.
#ifndef TFC_RUNTIME_BASE_LOG_H
#define TFC_RUNTIME_BASE_LOG_H

typedef enum tfc_log_level { TFC_LOG_DEBUG, TFC_LOG_INFO, TFC_LOG_WARNING, TFC_LOG_ERROR } tfc_log_level;

typedef void (*tfc_log_fn)(void *user, tfc_log_level level, const char *message); // called from any thread
void tfc_log_set(tfc_log_fn fn, void *user);
void tfc_log(tfc_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
