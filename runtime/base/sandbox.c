// Uses Landlock by its system calls (the C library has no functions for them), in the version that the kernel supports,
// and seccomp by libseccomp if the build found it.
#include "runtime/base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef TFC_HAVE_SECCOMP
#include <seccomp.h>
#endif

#include "runtime/base/memory_left.h"

static atomic_bool untrusted;
static _Atomic uint64_t most_nodes = UINT64_MAX;

bool tfc_untrusted(void) {
  return atomic_load_explicit(&untrusted, memory_order_relaxed);
}
uint64_t tfc_untrusted_nodes(void) {
  return atomic_load_explicit(&most_nodes, memory_order_relaxed);
}

// --- Files: Landlock -------------------------------------------------------------------------------------------------
// Constants of the kernel (include/uapi/linux/landlock.h), because older headers lack some of them.
enum {
  FS_EXECUTE = 1 << 0,
  FS_WRITE_FILE = 1 << 1,
  FS_READ_FILE = 1 << 2,
  FS_READ_DIR = 1 << 3,
  FS_REMOVE_DIR = 1 << 4,
  FS_REMOVE_FILE = 1 << 5,
  FS_MAKE_DIR = 1 << 7,
  FS_MAKE_REG = 1 << 8,
  FS_FIRST = (1 << 13) - 1, // rights of the first version
  FS_REFER = 1 << 13,       // renaming into another folder; version 2
  FS_TRUNCATE = 1 << 14,    // version 3
  FS_IOCTL_DEV = 1 << 15,   // version 5
  FS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
  READS = FS_READ_FILE | FS_READ_DIR,
  USES_DEVICE = FS_READ_FILE | FS_WRITE_FILE | FS_IOCTL_DEV,
  WRITES = READS | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_REFER | FS_TRUNCATE,
};
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, VERSION_FLAG = 1, PATH_BENEATH = 1 };
struct ruleset_attr {
  uint64_t handled_access_fs;
};
struct path_beneath_attr {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));

struct ruleset {
  int fd;
  uint64_t handled;
  int error; // errno of the first rule that the kernel rejected
};

static bool allow(struct ruleset *r, const char *path, uint64_t access) {
  struct stat st;
  int fd = open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return false;
  if (fstat(fd, &st) == 0) {
    if (!S_ISDIR(st.st_mode)) access &= FS_OF_FILES;
    struct path_beneath_attr rule = {access & r->handled, fd};
    if (rule.allowed_access && syscall(ADD_RULE, r->fd, PATH_BENEATH, &rule, 0) != 0 && !r->error) r->error = errno;
  }
  close(fd);
  return true;
}

// Allows the folder of `path` with links resolved, or the nearest folder that exists.
static void allow_around(struct ruleset *r, const char *path, bool is_folder) {
  struct stat st;
  bool there = stat(path, &st) == 0;
  if (there && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) { // a device or a pipe is written directly
    allow(r, path, USES_DEVICE);
    return;
  }
  char *real = there ? realpath(path, NULL) : NULL, *folder = real ? real : strdup(path);
  bool done = folder && there && is_folder && allow(r, folder, WRITES);
  while (folder && !done) {
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    const char *parent = slash ? folder : ".";
    done = (stat(parent, &st) == 0 && S_ISDIR(st.st_mode) && allow(r, parent, WRITES)) || !slash || slash == folder;
  }
  free(folder);
}

// Allows loaded libraries, with their folders (for plug-ins), and the loader, which starts every program.
static int allow_library(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size;
  struct ruleset *r = user;
  if (!info->dlpi_name || info->dlpi_name[0] != '/') return 0;
  char *path = strdup(info->dlpi_name), *slash = path ? strrchr(path, '/') : NULL;
  if (slash && strncmp(slash, "/ld-", 4) == 0) allow(r, path, FS_READ_FILE | FS_EXECUTE);
  if (slash && slash != path) *slash = 0, allow(r, path, READS);
  free(path);
  return 0;
}

static void allow_all(struct ruleset *r, const struct tfc_sandbox_rules *rules) {
  static const char *const read[] = {
      "/proc",      "/sys",       "/usr/lib",         "/usr/lib64",     "/lib",         "/lib64",
      "/usr/share", "/etc/fonts", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/var/cache/fontconfig"};
  static const char *const devices[] = {"/dev/null", "/dev/nvidia*"};
  for (size_t i = 0; i < sizeof read / sizeof *read; i++) allow(r, read[i], READS);
  for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
    glob_t found = {0};
    if (glob(devices[i], 0, NULL, &found) == 0)
      for (size_t k = 0; k < found.gl_pathc; k++) allow(r, found.gl_pathv[k], USES_DEVICE | FS_READ_DIR);
    globfree(&found);
  }
  dl_iterate_phdr(allow_library, r);
  // The measuring worker is started from this program's own file.
  allow(r, "/proc/self/exe", FS_READ_FILE | (rules->starts_programs ? FS_EXECUTE : 0));
  for (uint32_t i = 0; i < rules->path_count; i++) {
    const struct tfc_sandbox_path *p = &rules->paths[i];
    switch (p->access) {
    case TFC_SANDBOX_READ: allow(r, p->path, READS); break;
    case TFC_SANDBOX_RUN: allow(r, p->path, FS_READ_FILE | FS_EXECUTE); break;
    case TFC_SANDBOX_WRITE:
    case TFC_SANDBOX_FOLDER: allow_around(r, p->path, p->access == TFC_SANDBOX_FOLDER); break;
    }
  }
}

static tfc_status restrict_files(const struct tfc_sandbox_rules *rules, struct tfc_text *missing) {
  long version = syscall(CREATE_RULESET, NULL, 0, VERSION_FLAG);
  if (version < 1) {
    tfc_text_printf(missing,
                    "this kernel has no Landlock (%s): files and programs are kept from operations of the graph, "
                    "and not from this process\n",
                    strerror(errno));
    return NULL;
  }
  struct ruleset_attr attr = {FS_FIRST | (version >= 2 ? FS_REFER : 0) | (version >= 3 ? FS_TRUNCATE : 0) |
                              (version >= 5 ? FS_IOCTL_DEV : 0)};
  struct ruleset r = {.fd = (int)syscall(CREATE_RULESET, &attr, sizeof attr, 0), .handled = attr.handled_access_fs};
  if (r.fd < 0) return tfc_status_make(TFC_INTERNAL, "Landlock: no rules can be made: %s", strerror(errno));
  allow_all(&r, rules);
  tfc_status s = NULL;
  if (r.error)
    s = tfc_status_make(TFC_INTERNAL, "Landlock: a rule was refused: %s", strerror(r.error));
  else if (syscall(RESTRICT_SELF, r.fd, 0) != 0)
    s = tfc_status_make(TFC_INTERNAL, "Landlock: %s", strerror(errno));
  close(r.fd);
  return s;
}

// --- System calls: seccomp -------------------------------------------------------------------------------------------
#ifdef TFC_HAVE_SECCOMP
static tfc_status restrict_calls(const struct tfc_sandbox_rules *rules, struct tfc_text *missing) {
  (void)missing;
  static const int denied[] = {SCMP_SYS(socket),
                               SCMP_SYS(connect),
                               SCMP_SYS(bind),
                               SCMP_SYS(listen),
                               SCMP_SYS(accept),
                               SCMP_SYS(accept4),
#ifndef TFC_SANITIZED // the leak checker needs tracing when the program ends
                               SCMP_SYS(ptrace),
#endif
                               SCMP_SYS(process_vm_readv),
                               SCMP_SYS(process_vm_writev),
                               SCMP_SYS(pidfd_getfd),
                               SCMP_SYS(mount),
                               SCMP_SYS(umount2),
                               SCMP_SYS(pivot_root),
                               SCMP_SYS(chroot),
                               SCMP_SYS(unshare),
                               SCMP_SYS(setns),
                               SCMP_SYS(bpf),
                               SCMP_SYS(perf_event_open),
                               SCMP_SYS(userfaultfd),
                               SCMP_SYS(keyctl),
                               SCMP_SYS(add_key),
                               SCMP_SYS(request_key),
                               SCMP_SYS(init_module),
                               SCMP_SYS(finit_module),
                               SCMP_SYS(delete_module),
                               SCMP_SYS(kexec_load),
                               SCMP_SYS(reboot),
                               SCMP_SYS(swapon),
                               SCMP_SYS(swapoff),
                               SCMP_SYS(open_by_handle_at),
                               SCMP_SYS(io_uring_setup),
                               SCMP_SYS(mknod),
                               SCMP_SYS(mknodat),
                               SCMP_SYS(setuid),
                               SCMP_SYS(setgid),
                               SCMP_SYS(chmod),
                               SCMP_SYS(fchmodat),
                               SCMP_SYS(chown),
                               SCMP_SYS(fchownat),
                               SCMP_SYS(acct),
                               SCMP_SYS(settimeofday),
                               SCMP_SYS(clock_settime)};
  tfc_status s = NULL;
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (!filter) return tfc_status_no_memory(NULL);
  int rc = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  for (size_t i = 0; i < sizeof denied / sizeof *denied && !rc; i++)
    rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), denied[i], 0);
  if (!rules->starts_programs && !rc) rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execve), 0);
  if (!rules->starts_programs && !rc) rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(execveat), 0);
  if (!rc) rc = seccomp_load(filter);
  if (rc) s = tfc_status_make(TFC_INTERNAL, "seccomp: %s", strerror(-rc));
  seccomp_release(filter);
  return s;
}
#else
static tfc_status restrict_calls(const struct tfc_sandbox_rules *rules, struct tfc_text *missing) {
  (void)rules;
  tfc_text_printf(missing, "built without libseccomp: sockets and other system calls are not denied\n");
  return NULL;
}
#endif

// --- Limits ----------------------------------------------------------------------------------------------------------
static void set_limits(uint64_t memory, uint64_t nodes) {
  tfc_memory_limit(memory);
  atomic_store(&most_nodes, nodes);
  atomic_store(&untrusted, true);
}

tfc_status tfc_sandbox_enter(const struct tfc_sandbox_rules *rules, struct tfc_text *out_missing) {
  set_limits(rules->memory, rules->nodes);
  struct rlimit none = {0, 0}, data;
  setrlimit(RLIMIT_CORE, &none); // no core file, because a graph may have read private data
#ifdef TFC_SANITIZED
  (void)data;
  tfc_text_printf(out_missing,
                  "built with a sanitizer: the system does not limit memory, which the sanitizer reserves\n");
#else
  if (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur > rules->memory) {
    data.rlim_cur = rules->memory;
    if (setrlimit(RLIMIT_DATA, &data) != 0)
      tfc_text_printf(out_missing, "the system does not limit memory: %s\n", strerror(errno));
  }
#endif
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return tfc_status_make(TFC_INTERNAL, "rights cannot be given up: %s", strerror(errno));
  TFC_RETURN_IF_ERROR(restrict_files(rules, out_missing));
  return restrict_calls(rules, out_missing);
}

void tfc_sandbox_inherit(uint64_t nodes) {
  struct rlimit data = {0, 0};
  bool limited = getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY;
  set_limits(limited ? data.rlim_cur : TFC_UNTRUSTED_MEMORY, nodes);
}
