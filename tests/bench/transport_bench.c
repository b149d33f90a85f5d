// Ping-pong between two tasks: a message of tfc's transport beside MPI's own MPI_Send and MPI_Recv, and beside a pair
// of persistent requests, in one job, in turns.
//
//   mpirun -n 2 build/release/tests/transport_bench [ROUNDS]
//
// Prints a JSON object: for each size in bytes, the bandwidth of both (bytes one way / half of the time there and back,
// in GB/s, median of the rounds), and the median of the rounds' ratios. persistent_ns and plain_ns: how long a message
// takes with persistent requests and with MPI_Isend, MPI_Irecv and MPI_Wait, which do the same but make their requests.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/statistics.h"
#include "runtime/base/clock.h"
#include "runtime/transport/transport.h"

enum { MOST_ROUNDS = 101, TAG = 77 };
static const uint64_t sizes[] = {4, 16384, 1 << 20, 4 << 20, 16 << 20, 100 << 20};

static void check(tfc_status s) {
  if (!s) return;
  fprintf(stderr, "transport_bench: %s\n", tfc_status_message(s));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void send(struct tfc_transport *t, struct tfc_buffer *body, uint64_t size) {
  struct tfc_message *m = NULL;
  check(tfc_message_create(1, 0, &m));
  tfc_buffer_retain(m->body = body);
  m->body_size = size;
  check(t->type->send(t, 1 - t->rank, m));
}
static void receive(struct tfc_transport *t, uint64_t size) {
  struct tfc_message *m = NULL;
  while (!m) {
    check(t->type->progress(t, 0));
    check(t->type->receive(t, &m));
  }
  if (m->body_size != size) check(tfc_status_make(TFC_INTERNAL, "a message of another size"));
  tfc_message_free(m);
}
static double time_tfc(struct tfc_transport *t, struct tfc_buffer *body, uint64_t size, int count) {
  const int64_t begin = tfc_now_ns();
  t->type->attend(t, true);
  for (int i = 0; i < count; i++) {
    if (t->rank == 0) send(t, body, size);
    receive(t, size);
    if (t->rank == 1) send(t, body, size);
  }
  t->type->attend(t, false);
  return (double)(tfc_now_ns() - begin) / count / 2;
}

static double time_mpi(uint32_t rank, char *out, char *in, uint64_t size, int count) {
  const int peer = rank == 0 ? 1 : 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const int64_t begin = tfc_now_ns();
  for (int i = 0; i < count; i++) {
    if (rank == 0) MPI_Send(out, (int)size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
    MPI_Recv(in, (int)size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out, (int)size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD);
  }
  return (double)(tfc_now_ns() - begin) / count / 2;
}

// The same with requests that are made anew for each message, or once (`persistent`).
static double time_requests(uint32_t rank, char *out, char *in, uint64_t size, int count, bool persistent) {
  const int peer = rank == 0 ? 1 : 0;
  MPI_Request sends = MPI_REQUEST_NULL, receives = MPI_REQUEST_NULL;
  if (persistent) {
    MPI_Send_init(out, (int)size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &sends);
    MPI_Recv_init(in, (int)size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &receives);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int64_t begin = tfc_now_ns();
  for (int i = 0; i < count; i++) {
    for (uint32_t k = 0; k < 2; k++) {
      MPI_Request *now = k == rank ? &sends : &receives;
      if (persistent)
        MPI_Start(now);
      else if (k == rank)
        MPI_Isend(out, (int)size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, now);
      else
        MPI_Irecv(in, (int)size, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, now);
      MPI_Wait(now, MPI_STATUS_IGNORE);
    }
  }
  const double ns = (double)(tfc_now_ns() - begin) / count / 2;
  if (persistent) MPI_Request_free(&sends), MPI_Request_free(&receives);
  return ns;
}

int main(int argc, char **argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 11;
  int level = 0;
  struct tfc_transport *t = NULL;
  struct tfc_buffer *body = NULL;
  const uint64_t most = sizes[sizeof sizes / sizeof *sizes - 1];
  if (rounds < 1 || rounds > MOST_ROUNDS) {
    fprintf(stderr, "transport_bench: 1 to %d rounds\n", MOST_ROUNDS);
    return 2;
  }
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
  check(tfc_transport_mpi(&t));
  if (t->count != 2) check(tfc_status_make(TFC_INVALID_ARGUMENT, "mpirun -n 2"));
  check(tfc_buffer_create_host(most, &body));
  char *in = malloc(most);
  if (!in) check(tfc_status_no_memory(NULL));
  memset(body->data, 1, most);
  memset(in, 2, most);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const uint64_t size = sizes[k];
    const int count = size <= 16384 ? 2000 : (int)((256 << 20) / size + 1);
    double tfc[MOST_ROUNDS], mpi[MOST_ROUNDS], ratio[MOST_ROUNDS], persistent[MOST_ROUNDS], plain[MOST_ROUNDS];
    for (int r = -1; r < rounds; r++) { // the first one warms up
      const double a = time_tfc(t, body, size, count), b = time_mpi(t->rank, body->data, in, size, count);
      const double c = time_requests(t->rank, body->data, in, size, count, true);
      const double d = time_requests(t->rank, body->data, in, size, count, false);
      if (r >= 0) persistent[r] = c, plain[r] = d;
      if (r >= 0) tfc[r] = (double)size / a, mpi[r] = (double)size / b, ratio[r] = b / a;
    }
    const struct tfc_quartiles x = tfc_quartiles_of(tfc, (uint32_t)rounds), y = tfc_quartiles_of(mpi, (uint32_t)rounds),
                               z = tfc_quartiles_of(ratio, (uint32_t)rounds);
    if (t->rank == 0)
      printf("%s\"%llu\": {\"tfc\": %.6g, \"mpi\": %.6g, \"ratio\": %.4g, \"q1\": %.4g, \"q3\": %.4g, "
             "\"persistent_ns\": %.6g, \"plain_ns\": %.6g}%s",
             k ? " " : "{", (unsigned long long)size, x.median, y.median, z.median, z.q1, z.q3,
             tfc_quartiles_of(persistent, (uint32_t)rounds).median, tfc_quartiles_of(plain, (uint32_t)rounds).median,
             k + 1 < sizeof sizes / sizeof *sizes ? ",\n" : "}\n");
    fflush(stdout);
  }
  tfc_buffer_release(body);
  free(in);
  tfc_transport_close(t);
  MPI_Finalize();
  return 0;
}
