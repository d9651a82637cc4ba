/* Appends events of one size to a Book through book.h, to LMDB as Vere does, or to a plain file. append.rs and
** append.py do the same without the plain file. Each batch is on stable storage before the next. Prints the seconds and the seconds of processor time.
**
** Usage, in a directory for the plain file: append STORE DIR BYTES BATCH EVENTS
*/
#define DEEDBOOK_OWN_TYPES
#include "book.h"
#include "lmdb.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(did) do { if (!(did)) { fprintf(stderr, "append.c:%d: %s\n", __LINE__, #did); exit(1); } } while (0)

static double seconds(clockid_t clock)
{
  struct timespec now;
  CHECK(0 == clock_gettime(clock, &now));
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static MDB_env* open_lmdb(const char* dir)
{
  MDB_env* env;
  CHECK(0 == mdb_env_create(&env));
  CHECK(0 == mdb_env_set_maxdbs(env, 2));
  CHECK(0 == mdb_env_set_mapsize(env, (size_t)64 << 30));
  CHECK(0 == mdb_env_open(env, dir, 0, 0664));
  return env;
}

static void save_lmdb(MDB_env* env, uint64_t event, uint64_t count, void** buffers, size_t* sizes)
{
  MDB_txn* txn;
  MDB_dbi dbi;
  CHECK(0 == mdb_txn_begin(env, NULL, 0, &txn));
  CHECK(0 == mdb_dbi_open(txn, "EVENTS", MDB_CREATE | MDB_INTEGERKEY, &dbi));
  for (uint64_t i = 0; i < count; i++, event++) {
    MDB_val key = {sizeof event, &event}, value = {sizes[i], buffers[i]};
    CHECK(0 == mdb_put(txn, dbi, &key, &value, MDB_NOOVERWRITE));
  }
  CHECK(0 == mdb_txn_commit(txn));
}

static void save_file(int file, uint64_t count, void** buffers, size_t* sizes)
{
  for (uint64_t i = 0; i < count; i++) {
    CHECK((ssize_t)sizes[i] == write(file, buffers[i], sizes[i]));
  }
  CHECK(0 == fdatasync(file));
}

int main(int argc, char** argv)
{
  CHECK(argc == 6);
  int is_book = 0 == strcmp(argv[1], "book"), is_lmdb = 0 == strcmp(argv[1], "lmdb");
  size_t bytes = strtoull(argv[3], NULL, 10);
  uint64_t batch = strtoull(argv[4], NULL, 10), events = strtoull(argv[5], NULL, 10);

  uint8_t* event = malloc(bytes);
  void** buffers = calloc(batch, sizeof *buffers);
  size_t* sizes = calloc(batch, sizeof *sizes);
  CHECK(event && buffers && sizes);
  for (size_t i = 0; i < bytes; i++) {
    event[i] = (uint8_t)((i * 2654435761u) >> 13);
  }
  for (uint64_t i = 0; i < batch; i++) {
    buffers[i] = event;
    sizes[i] = bytes;
  }

  u3_book* book = is_book ? u3_book_init(argv[2]) : NULL;
  MDB_env* env = is_lmdb ? open_lmdb(argv[2]) : NULL;
  int file = is_book || is_lmdb ? -1 : open("plain", O_WRONLY | O_CREAT | O_EXCL, 0600);
  CHECK(book || env || file >= 0);
  double wall = seconds(CLOCK_MONOTONIC), busy = seconds(CLOCK_PROCESS_CPUTIME_ID);
  for (uint64_t next = 1; next <= events; next += batch) {
    if (is_book) {
      CHECK(c3y == u3_book_save(book, next, batch, buffers, sizes, 0));
    } else if (is_lmdb) {
      save_lmdb(env, next, batch, buffers, sizes);
    } else {
      save_file(file, batch, buffers, sizes);
    }
  }
  wall = seconds(CLOCK_MONOTONIC) - wall;
  busy = seconds(CLOCK_PROCESS_CPUTIME_ID) - busy;
  u3_book_exit(book);
  if (is_lmdb) {
    mdb_env_close(env);
  }
  printf("%.9f %.9f\n", wall, busy);
  return 0;
}
