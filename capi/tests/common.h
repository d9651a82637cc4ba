/* What the test programs share: directories, events whose bytes follow from their numbers, and HOLDS.
*/
#ifndef DEEDBOOK_TESTS_COMMON_H
#define DEEDBOOK_TESTS_COMMON_H

#include "book.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed_i = 0;

#define HOLDS(what)                                                            \
  do {                                                                         \
    if ( !(what) ) {                                                           \
      fprintf(stderr, "%s:%d: does not hold: %s\n", __func__, __LINE__, #what); \
      failed_i = 1;                                                            \
    }                                                                          \
  } while ( 0 )

static const char* home_c;

/* A directory of its own for each part. */
static inline char*
place(const char* name_c)
{
  static char paths[128][4096];
  static int  used_i = 0;
  char*       path_c = paths[used_i++];
  snprintf(path_c, sizeof(paths[0]), "%s/%s", home_c, name_c);
  mkdir(path_c, 0755);
  return path_c;
}

static inline char*
log_in(const char* dir_c)
{
  static char path_c[4200];
  snprintf(path_c, sizeof(path_c), "%s/book.log", dir_c);
  return path_c;
}

static inline off_t
size_of(const char* dir_c)
{
  struct stat sta_u;
  return stat(log_in(dir_c), &sta_u) ? -1 : sta_u.st_size;
}

/* The bytes of an event: a mug, and a jam that depends on the number. */
static inline size_t
fill(uint8_t* buf_y, uint64_t eve_d)
{
  size_t len_z = 4 + eve_d % 100;
  for ( size_t i = 0; i < len_z; i++ ) {
    buf_y[i] = (uint8_t)(eve_d * 31 + i);
  }
  return len_z;
}

/* Save some events. */
static inline c3_o
save(u3_book* log_u, uint64_t eve_d, uint64_t len_d, uint64_t epo_d)
{
  uint8_t (*all_y)[128] = calloc(len_d ? len_d : 1, 128);
  void**    byt_p = calloc(len_d ? len_d : 1, sizeof(void*));
  c3_z*     siz_i = calloc(len_d ? len_d : 1, sizeof(c3_z));
  for ( uint64_t i = 0; i < len_d; i++ ) {
    siz_i[i] = fill(all_y[i], eve_d + i);
    byt_p[i] = all_y[i];
  }
  c3_o ret_o = u3_book_save(log_u, eve_d, len_d, byt_p, siz_i, epo_d);
  free(all_y);
  free(byt_p);
  free(siz_i);
  return ret_o;
}

/* Count events that come in order, and stop at one. */
typedef struct {
  uint64_t next_d;
  uint64_t stop_d;
  int      good_i;
} seen;

static inline c3_o
see(void* ptr_v, c3_d eve_d, c3_z len_z, void* buf_v)
{
  seen*   see_u = ptr_v;
  uint8_t buf_y[128];
  size_t  want_z = fill(buf_y, eve_d);
  see_u->good_i += eve_d == see_u->next_d && len_z == want_z && !memcmp(buf_v, buf_y, want_z);
  see_u->next_d++;
  return eve_d == see_u->stop_d ? c3n : c3y;
}

static inline int
read_all(u3_book* log_u, uint64_t eve_d, uint64_t len_d)
{
  seen see_u = { eve_d, 0, 0 };
  return c3y == u3_book_read(log_u, &see_u, eve_d, len_d, see) ? see_u.good_i : -1;
}

static inline void
check_bounds(u3_book* log_u, uint64_t low_d, uint64_t hig_d)
{
  c3_d is_d = 99, to_d = 99;
  HOLDS(c3y == u3_book_gulf(log_u, &is_d, &to_d));
  HOLDS(is_d == low_d);
  HOLDS(to_d == hig_d);
}

static inline void
flip(const char* dir_c, off_t off_i)
{
  uint8_t byt_y;
  int     fid_i = open(log_in(dir_c), O_RDWR);
  HOLDS(1 == pread(fid_i, &byt_y, 1, off_i));
  byt_y ^= 0xff;
  HOLDS(1 == pwrite(fid_i, &byt_y, 1, off_i));
  close(fid_i);
}

typedef struct {
  c3_zs   siz_zs;
  uint8_t buf_y[64];
  int     null_i;
} meta;

static inline void
see_meta(void* ptr_v, c3_zs siz_zs, void* buf_v)
{
  meta* met_u = ptr_v;
  met_u->siz_zs = siz_zs;
  met_u->null_i = !buf_v;
  if ( siz_zs > 0 ) {
    memcpy(met_u->buf_y, buf_v, (size_t)siz_zs);
  }
}

#endif
