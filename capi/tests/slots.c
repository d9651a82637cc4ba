/* A program over logs in the layout slots, which vere's head writes: byte for byte against files that it
** wrote, and what is left of damaged ones. Its arguments are an empty directory and that of the files.
*/
#include "common.h"

#define DEEDS_AT 8192
#define SLOT_BYTES 48
#define LOG_BYTES 16384

static const char* data_c;

/* The events of the files: buffers of mug and jam. */
static uint8_t eve_y[5][512];
static size_t  eve_z[5];

static void
read_events(void)
{
  char     path_c[4200], line_c[1200];
  unsigned byt_u;
  snprintf(path_c, sizeof(path_c), "%s/events.hex", data_c);
  FILE* fil_u = fopen(path_c, "r");
  for ( int i = 0; fil_u && i < 5 && fgets(line_c, sizeof(line_c), fil_u); i++ ) {
    for ( eve_z[i] = 0; 1 == sscanf(line_c + 2 * eve_z[i], "%2x", &byt_u); eve_z[i]++ ) {
      eve_y[i][eve_z[i]] = (uint8_t)byt_u;
    }
  }
  if ( fil_u ) {
    fclose(fil_u);
  }
  HOLDS(5 == eve_z[0] && 7 == eve_z[1] && 36 == eve_z[2] && 307 == eve_z[3] && 51 == eve_z[4]);
}

static c3_o
save_golden(u3_book* log_u, uint64_t eve_d, int from_i, int to_i, uint64_t epo_d)
{
  void* byt_p[5];
  c3_z  siz_i[5];
  for ( int i = from_i; i < to_i; i++ ) {
    byt_p[i - from_i] = eve_y[i];
    siz_i[i - from_i] = eve_z[i];
  }
  return u3_book_save(log_u, eve_d, (c3_d)(to_i - from_i), byt_p, siz_i, epo_d);
}

static void
put_number(uint8_t* to_y, uint64_t num_d, int len_i)
{
  for ( int i = 0; i < len_i; i++ ) {
    to_y[i] = (uint8_t)(num_d >> (8 * i));
  }
}

/* The deeds of some events; returns their end. */
static size_t
put_deeds(uint8_t* log_y, size_t at_z, int from_i, int to_i)
{
  for ( int i = from_i; i < to_i; i++ ) {
    put_number(log_y + at_z, eve_z[i], 8);
    memcpy(log_y + at_z + 8, eve_y[i], eve_z[i]);
    put_number(log_y + at_z + 8 + eve_z[i], eve_z[i], 8);
    at_z += 16 + eve_z[i];
  }
  return at_z;
}

/* A log of the reference: its slots, and the deeds of its first events; returns its size. */
static size_t
golden(uint8_t* log_y, const char* name_c, int count_i)
{
  char    path_c[4200];
  uint8_t two_y[2 * SLOT_BYTES];
  snprintf(path_c, sizeof(path_c), "%s/%s/slots.bin", data_c, name_c);
  FILE* fil_u = fopen(path_c, "rb");
  HOLDS(fil_u && sizeof(two_y) == fread(two_y, 1, sizeof(two_y), fil_u));
  if ( fil_u ) {
    fclose(fil_u);
  }
  memset(log_y, 0, LOG_BYTES);
  memcpy(log_y, two_y, SLOT_BYTES);
  memcpy(log_y + 4096, two_y + SLOT_BYTES, SLOT_BYTES);
  return put_deeds(log_y, DEEDS_AT, 0, count_i);
}

static void
write_log(const char* dir_c, const uint8_t* log_y, size_t len_z)
{
  FILE* fil_u = fopen(log_in(dir_c), "wb");
  HOLDS(fil_u && len_z == fwrite(log_y, 1, len_z, fil_u));
  if ( fil_u ) {
    fclose(fil_u);
  }
}

static int
log_is(const char* dir_c, const uint8_t* log_y, size_t len_z)
{
  uint8_t got_y[LOG_BYTES];
  FILE*   fil_u = fopen(log_in(dir_c), "rb");
  size_t  got_z = fil_u ? fread(got_y, 1, sizeof(got_y), fil_u) : 0;
  if ( fil_u ) {
    fclose(fil_u);
  }
  return fil_u && got_z == len_z && !memcmp(got_y, log_y, len_z);
}

static int
is_there(const char* dir_c, const char* name_c)
{
  char path_c[4200];
  snprintf(path_c, sizeof(path_c), "%s/%s", dir_c, name_c);
  return !access(path_c, F_OK);
}

/* The directory 0iN of a part. */
static char*
epoch(const char* part_c, int epo_i)
{
  char name_c[256];
  place(part_c);
  snprintf(name_c, sizeof(name_c), "%s/0i%d", part_c, epo_i);
  return place(name_c);
}

/* A directory with a log of the reference in it. */
static char*
epoch_with(const char* part_c, const char* name_c, int count_i)
{
  uint8_t log_y[LOG_BYTES];
  char*   dir_c = epoch(part_c, 0);
  size_t  len_z = golden(log_y, name_c, count_i);
  write_log(dir_c, log_y, len_z);
  return dir_c;
}

/* Count golden events that come in order. */
static c3_o
see_golden(void* ptr_v, c3_d num_d, c3_z len_z, void* buf_v)
{
  seen* see_u = ptr_v;
  int   i = (int)(num_d - see_u->stop_d - 1);
  see_u->good_i += num_d == see_u->next_d++ && len_z == eve_z[i] && !memcmp(buf_v, eve_y[i], len_z);
  return c3y;
}

static int
holds_golden(u3_book* log_u, uint64_t epo_d, uint64_t count_d)
{
  seen see_u = { epo_d + 1, epo_d, 0 };
  return c3y == u3_book_read(log_u, &see_u, epo_d + 1, count_d, see_golden)
      && see_u.good_i == (int)count_d;
}

static void
the_same_batches_give_the_same_bytes(void)
{
  struct { const char* name_c; int epo_i; int ends_i[4]; } logs[] = {
    { "head-empty", 0, { 0 } },       { "head-empty100", 100, { 0 } },
    { "head-3x1", 0, { 3, 0 } },      { "head-5x3", 0, { 2, 3, 5, 0 } },
    { "head-epoch100", 100, { 3, 0 } },
  };
  uint8_t log_y[LOG_BYTES];
  for ( size_t l = 0; l < sizeof(logs) / sizeof(logs[0]); l++ ) {
    char*    dir_c = epoch(logs[l].name_c, logs[l].epo_i);
    uint64_t epo_d = (uint64_t)logs[l].epo_i;
    u3_book* log_u = u3_book_init(dir_c);
    int      at_i = 0;
    HOLDS(log_u);
    for ( int* end_i = logs[l].ends_i; *end_i; at_i = *end_i++ ) {
      HOLDS(c3y == save_golden(log_u, epo_d + 1 + (uint64_t)at_i, at_i, *end_i, epo_d));
    }
    /* The lower one is what the header has: the event before the first one. */
    check_bounds(log_u, at_i ? epo_d : 0, at_i ? epo_d + (uint64_t)at_i : 0);
    HOLDS(!at_i || holds_golden(log_u, epo_d, (uint64_t)at_i));
    u3_book_exit(log_u);
    size_t len_z = golden(log_y, logs[l].name_c, at_i);
    HOLDS(log_is(dir_c, log_y, len_z));
  }
}

/* Opened for each batch, with our files beside it and without. */
static void
a_log_of_the_reference_goes_on(void)
{
  uint8_t log_y[LOG_BYTES];
  int     ends_i[] = { 0, 2, 3, 5 };
  char*   dir_c = epoch_with("goes-on", "head-empty", 0);
  for ( int i = 0; i < 3; i++ ) {
    u3_book* log_u = u3_book_init(dir_c);
    HOLDS(log_u);
    check_bounds(log_u, 0, (uint64_t)ends_i[i]);
    HOLDS(c3y == save_golden(log_u, (uint64_t)ends_i[i] + 1, ends_i[i], ends_i[i + 1], 0));
    u3_book_exit(log_u);
  }
  HOLDS(log_is(dir_c, log_y, golden(log_y, "head-5x3", 5)));

  dir_c = epoch_with("three-and-two", "head-3x1", 3);
  u3_book* log_u = u3_book_init(dir_c);
  HOLDS(c3n == save_golden(log_u, 5, 3, 5, 0));
  HOLDS(c3y == save_golden(log_u, 4, 3, 5, 0));
  HOLDS(holds_golden(log_u, 0, 5));
  u3_book_exit(log_u);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 0, 5);
  HOLDS(holds_golden(log_u, 0, 5));
  u3_book_exit(log_u);
  /* The slot that was the older one has the batch now, and the other one stays. */
  golden(log_y, "head-3x1", 5);
  uint8_t got_y[DEEDS_AT];
  int     fid_i = open(log_in(dir_c), O_RDONLY);
  HOLDS(DEEDS_AT == pread(fid_i, got_y, DEEDS_AT, 0));
  close(fid_i);
  HOLDS(!memcmp(got_y + 4096, log_y + 4096, 4096));
  put_number(log_y + 16, 5, 8);
  put_number(log_y + 24, 2, 8);
  put_number(log_y + 32, 2, 8);
  HOLDS(!memcmp(got_y, log_y, 40));
  /* The sum of the same batch in another log of the reference. */
  golden(log_y, "head-5x3", 5);
  HOLDS(!memcmp(got_y + 40, log_y + 4096 + 40, 4));
}

static void
the_first_save_may_set_the_epoch(void)
{
  char*    dir_c = epoch("set", 0);
  u3_book* log_u = u3_book_init(dir_c);
  HOLDS(c3n == save(log_u, 5, 1, 0));
  HOLDS(c3n == save(log_u, 5, 1, 5));
  HOLDS(c3y == save(log_u, 5, 2, 4));
  check_bounds(log_u, 4, 6);
  HOLDS(c3n == u3_book_walk_init(log_u, &(u3_book_walk){ 0 }, 4, 6));
  u3_book_exit(log_u);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 4, 6);
  HOLDS(2 == read_all(log_u, 5, 2));
  HOLDS(c3y == save(log_u, 7, 1, 4));
  u3_book_exit(log_u);
}

/* The log opens with its first event, and two more can follow it. */
static void
goes_on_after_one(const char* dir_c)
{
  u3_book* log_u = u3_book_init(dir_c);
  HOLDS(log_u);
  check_bounds(log_u, 0, 1);
  HOLDS(holds_golden(log_u, 0, 1));
  HOLDS(c3y == save_golden(log_u, 2, 1, 3, 0));
  u3_book_exit(log_u);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 0, 3);
  HOLDS(holds_golden(log_u, 0, 3));
  u3_book_exit(log_u);
}

/* As vere's own test partial_batch_recovery: a byte of the newest batch changes while the log is closed. The
** sidecar vouched for the log, and the log gave all three events.
*/
static void
the_newest_batch_changed(void)
{
  char*    dir_c = epoch("newest", 0);
  u3_book* log_u = u3_book_init(dir_c);
  HOLDS(c3y == save_golden(log_u, 1, 0, 1, 0));
  HOLDS(c3y == save_golden(log_u, 2, 1, 3, 0));
  u3_book_exit(log_u);
  int     fid_i = open(log_in(dir_c), O_RDWR);
  off_t   at_i = (off_t)size_of(dir_c) - 10;
  uint8_t byt_y;
  HOLDS(1 == pread(fid_i, &byt_y, 1, at_i));
  byt_y ^= 1;
  HOLDS(1 == pwrite(fid_i, &byt_y, 1, at_i));
  close(fid_i);
  goes_on_after_one(dir_c);
  HOLDS(is_there(dir_c, ".deedbook/loss"));
  HOLDS(is_there(dir_c, "book.log.cut-8213"));
}

/* Inside the second event of the only batch, of a log of ours and of one of the reference. */
static void
the_first_batch_cut(void)
{
  for ( int ours_i = 0; ours_i < 2; ours_i++ ) {
    char*    dir_c;
    u3_book* log_u;
    if ( ours_i ) {
      dir_c = epoch("cut-ours", 0);
      log_u = u3_book_init(dir_c);
      HOLDS(c3y == save_golden(log_u, 1, 0, 2, 0));
      u3_book_exit(log_u);
      HOLDS(DEEDS_AT + 21 + 23 == size_of(dir_c));
    }
    else {
      dir_c = epoch_with("cut-theirs", "head-3x1", 3);
    }
    HOLDS(!truncate(log_in(dir_c), DEEDS_AT + 21 + 5));
    goes_on_after_one(dir_c);
    HOLDS(ours_i == is_there(dir_c, ".deedbook/loss"));
    HOLDS(is_there(dir_c, "book.log.cut-8213"));
  }
}

/* Then the older slot decides, and nothing of the batch stays: no slot vouches for its whole events.
** Where our mark says that they were acknowledged, it does.
*/
static void
a_later_batch_cut(void)
{
  for ( int ours_i = 0; ours_i < 2; ours_i++ ) {
    char*    dir_c = epoch_with(ours_i ? "later-ours" : "later-theirs", "head-5x3", 5);
    u3_book* log_u;
    if ( ours_i ) {
      u3_book_exit(u3_book_init(dir_c));
    }
    int las_i = ours_i ? 4 : 3;
    HOLDS(!truncate(log_in(dir_c), size_of(dir_c) - 5));
    HOLDS(log_u = u3_book_init(dir_c));
    check_bounds(log_u, 0, (uint64_t)las_i);
    HOLDS(holds_golden(log_u, 0, (uint64_t)las_i));
    HOLDS(c3y == save_golden(log_u, (uint64_t)las_i + 1, las_i, 5, 0));
    u3_book_exit(log_u);
    HOLDS(log_u = u3_book_init(dir_c));
    check_bounds(log_u, 0, 5);
    HOLDS(holds_golden(log_u, 0, 5));
    u3_book_exit(log_u);
    HOLDS(ours_i == is_there(dir_c, ".deedbook/loss"));
    HOLDS(is_there(dir_c, ours_i ? "book.log.cut-8611" : "book.log.cut-8288"));
  }
}

static void
one_slot_damaged(void)
{
  struct { const char* name_c; uint64_t last_d; } logs[] = {
    { "head-badnewest", 3 }, { "head-badolder", 5 }
  };
  for ( size_t l = 0; l < 2; l++ ) {
    char*    dir_c = epoch_with(logs[l].name_c, logs[l].name_c, 5);
    u3_book* log_u = u3_book_init(dir_c);
    uint64_t las_d = logs[l].last_d;
    HOLDS(log_u);
    check_bounds(log_u, 0, las_d);
    HOLDS(holds_golden(log_u, 0, las_d));
    HOLDS(c3y == save(log_u, las_d + 1, 1, 0));
    u3_book_exit(log_u);
    HOLDS(log_u = u3_book_init(dir_c));
    check_bounds(log_u, 0, las_d + 1);
    HOLDS(holds_golden(log_u, 0, las_d));
    HOLDS(1 == read_all(log_u, las_d + 1, 1));
    u3_book_exit(log_u);
  }
}

/* Refused, and the log stays as it is. */
static void
refuses(const char* dir_c, const uint8_t* log_y, size_t len_z)
{
  HOLDS(!u3_book_init(dir_c));
  HOLDS(log_is(dir_c, log_y, len_z));
  HOLDS(!is_there(dir_c, ".deedbook/loss"));
}

static void
no_header(void)
{
  uint8_t log_y[LOG_BYTES];
  char*   dir_c;
  int     sizes_i[] = { 0, 1, 8, 47, 100, 4096, 8191 };
  size_t  len_z;
  for ( int ours_i = 0; ours_i < 2; ours_i++ ) {
    for ( size_t i = 0; i < sizeof(sizes_i) / sizeof(sizes_i[0]); i++ ) {
      char part_c[64];
      snprintf(part_c, sizeof(part_c), "below-%d-%d", ours_i, sizes_i[i]);
      dir_c = epoch_with(part_c, "head-5x3", 5);
      golden(log_y, "head-5x3", 5);
      if ( ours_i ) {
        u3_book_exit(u3_book_init(dir_c));
      }
      HOLDS(!truncate(log_in(dir_c), sizes_i[i]));
      if ( !ours_i && !sizes_i[i] ) continue;  /* a new log */
      refuses(dir_c, log_y, (size_t)sizes_i[i]);
    }
    /* Both slots: the magic, the version, the checksum. */
    for ( int at_i = 0; at_i < SLOT_BYTES; at_i += at_i ? 36 : 4 ) {
      char part_c[64];
      snprintf(part_c, sizeof(part_c), "both-%d-%d", ours_i, at_i);
      dir_c = epoch_with(part_c, "head-5x3", 5);
      len_z = golden(log_y, "head-5x3", 5);
      if ( ours_i ) {
        u3_book_exit(u3_book_init(dir_c));
      }
      flip(dir_c, at_i);
      flip(dir_c, 4096 + at_i);
      log_y[at_i] ^= 0xff;
      log_y[4096 + at_i] ^= 0xff;
      refuses(dir_c, log_y, len_z);
    }
  }
}

/* As vere replays: a walk for each 1,024 events. */
static void
a_replay(void)
{
  char*        dir_c = epoch("replay", 0);
  u3_book*     log_u = u3_book_init(dir_c);
  u3_book_walk itr_u;
  uint8_t      buf_y[128];
  c3_z         len_z;
  void*        buf_v;
  for ( uint64_t at_d = 1; at_d <= 3000; at_d += 1024 ) {
    uint64_t len_d = 3001 - at_d < 1024 ? 3001 - at_d : 1024;
    HOLDS(c3y == save(log_u, at_d, len_d, 0));
  }
  u3_book_exit(log_u);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 0, 3000);
  uint64_t next_d = 1;
  while ( next_d <= 3000 ) {
    uint64_t last_d = next_d + 1023 < 3000 ? next_d + 1023 : 3000;
    HOLDS(c3y == u3_book_walk_init(log_u, &itr_u, next_d, last_d));
    while ( c3y == u3_book_walk_next(&itr_u, &len_z, &buf_v) ) {
      size_t want_z = fill(buf_y, next_d++);
      HOLDS(len_z == want_z && !memcmp(buf_v, buf_y, want_z));
      free(buf_v);
    }
    u3_book_walk_done(&itr_u);
    HOLDS(next_d == last_d + 1);
    if ( next_d != last_d + 1 ) break;
  }
  HOLDS(1024 == read_all(log_u, 1025, 1024));
  HOLDS(-1 == read_all(log_u, 2990, 12));
  u3_book_exit(log_u);
}

/* The bytes of meta.bin, which vere reads. */
static void
metadata(void)
{
  char*    dir_c = epoch("meta", 0);
  u3_book* log_u = u3_book_init(dir_c);
  uint8_t  who_y[16] = { 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 };
  uint8_t  want_y[256] = { 0 }, got_y[257];
  uint32_t ver_w = 3, lif_w = 7;
  uint8_t  fak_y = 1;
  char     path_c[4200];
  meta     met_u = { 0 };
  HOLDS(c3y == u3_book_save_meta(log_u, "who", 16, who_y));
  HOLDS(c3y == u3_book_save_meta(log_u, "version", 4, &ver_w));
  HOLDS(c3y == u3_book_save_meta(log_u, "life", 4, &lif_w));
  HOLDS(c3y == u3_book_save_meta(log_u, "fake", 1, &fak_y));
  HOLDS(c3n == u3_book_save_meta(log_u, "who", 8, who_y));
  HOLDS(c3n == u3_book_save_meta(log_u, "wh", 16, who_y));
  u3_book_read_meta(log_u, &met_u, "wh", see_meta);
  HOLDS(-1 == met_u.siz_zs && met_u.null_i);
  u3_book_exit(log_u);
  memcpy(want_y, who_y, 16);
  put_number(want_y + 16, 3, 4);
  put_number(want_y + 20, 7, 4);
  want_y[24] = 1;
  snprintf(path_c, sizeof(path_c), "%s/meta.bin", dir_c);
  FILE* fil_u = fopen(path_c, "rb");
  HOLDS(fil_u && 256 == fread(got_y, 1, sizeof(got_y), fil_u) && !memcmp(got_y, want_y, 256));
  if ( fil_u ) {
    fclose(fil_u);
  }
}

int
main(int argc, char** argv)
{
  if ( argc < 3 ) {
    fprintf(stderr, "usage: slots DIRECTORY FILES\n");
    return 2;
  }
  home_c = argv[1];
  data_c = argv[2];
  read_events();
  the_same_batches_give_the_same_bytes();
  a_log_of_the_reference_goes_on();
  the_first_save_may_set_the_epoch();
  the_first_batch_cut();
  the_newest_batch_changed();
  a_later_batch_cut();
  one_slot_damaged();
  no_header();
  a_replay();
  metadata();
  printf("%s\n", failed_i ? "failed" : "ok");
  return failed_i;
}
