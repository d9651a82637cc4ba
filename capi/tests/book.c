/* A program over the functions of book.h, as vere would use them. With a directory as its argument it
** does everything there; prints what does not hold, and exits with 1.
*/
#include "common.h"

static void
an_empty_log(void)
{
  char*    dir_c = place("empty");
  u3_book* log_u = u3_book_init(dir_c);
  u3_book_walk itr_u;
  HOLDS(log_u);
  check_bounds(log_u, 0, 0);
  HOLDS(-1 == read_all(log_u, 1, 1));
  HOLDS(-1 == read_all(log_u, 0, 0));
  HOLDS(c3n == u3_book_walk_init(log_u, &itr_u, 1, 1));
  u3_book_walk_done(&itr_u);
  /* The second handle is refused, not only slow. */
  HOLDS(!u3_book_init(dir_c));
  u3_book_exit(log_u);
  log_u = u3_book_init(dir_c);
  HOLDS(log_u);
  u3_book_exit(log_u);
}

static void
what_is_saved_is_read(void)
{
  char*    dir_c = place("saved");
  u3_book* log_u = u3_book_init(dir_c);
  HOLDS(c3y == save(log_u, 1, 1, 0));
  HOLDS(c3y == save(log_u, 2, 299, 0));
  check_bounds(log_u, 1, 300);
  HOLDS(300 == read_all(log_u, 1, 300));
  HOLDS(1 == read_all(log_u, 300, 1));
  HOLDS(0 == read_all(log_u, 7, 0));
  HOLDS(-1 == read_all(log_u, 300, 2));
  HOLDS(-1 == read_all(log_u, 301, 1));
  HOLDS(-1 == read_all(log_u, 0, 1));
  HOLDS(-1 == read_all(log_u, 2, UINT64_MAX));
  seen see_u = { 5, 7, 0 };
  HOLDS(c3n == u3_book_read(log_u, &see_u, 5, 100, see));
  HOLDS(3 == see_u.good_i);
  u3_book_exit(log_u);
  log_u = u3_book_init(dir_c);
  check_bounds(log_u, 1, 300);
  HOLDS(300 == read_all(log_u, 1, 300));
  HOLDS(c3y == save(log_u, 301, 1, 0));
  HOLDS(301 == read_all(log_u, 1, 301));
  /* The second batch takes the memory of the first. */
  HOLDS(c3y == save(log_u, 302, 50, 0));
  HOLDS(c3y == save(log_u, 352, 3, 0));
  check_bounds(log_u, 1, 354);
  HOLDS(354 == read_all(log_u, 1, 354));
  u3_book_exit(log_u);
}

static void
numbers_follow_each_other(void)
{
  u3_book* log_u = u3_book_init(place("numbers"));
  HOLDS(c3n == save(log_u, 5, 1, 0));
  HOLDS(c3n == save(log_u, 0, 1, UINT64_MAX));
  check_bounds(log_u, 0, 0);
  /* An empty log begins after whatever epoch is said. */
  HOLDS(c3y == save(log_u, 5, 2, 4));
  check_bounds(log_u, 5, 6);
  HOLDS(c3n == save(log_u, 8, 1, 4));
  HOLDS(c3n == save(log_u, 6, 1, 4));
  HOLDS(c3n == save(log_u, 1, 1, 0));
  HOLDS(c3y == save(log_u, 7, 1, 4));
  check_bounds(log_u, 5, 7);
  HOLDS(3 == read_all(log_u, 5, 3));
  u3_book_exit(log_u);
}

static void
a_directory_names_its_epoch(void)
{
  char*    dir_c = place("0i100");
  u3_book* log_u = u3_book_init(dir_c);
  check_bounds(log_u, 0, 0);
  HOLDS(c3n == save(log_u, 1, 1, 0));
  HOLDS(c3y == save(log_u, 101, 3, 100));
  /* Of the layout slots: the event before the first one, and the last one. */
  check_bounds(log_u, 100, 103);
  u3_book_exit(log_u);
  log_u = u3_book_init(dir_c);
  check_bounds(log_u, 100, 103);
  HOLDS(3 == read_all(log_u, 101, 3));
  u3_book_exit(log_u);
}

static void
sizes(void)
{
  u3_book* log_u = u3_book_init(place("sizes"));
  uint8_t  buf_y[8] = { 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4 };
  void*    byt_p[2] = { buf_y, buf_y };
  c3_z     siz_i[2] = { 8, 3 };
  /* No mug: neither of the two is there. */
  HOLDS(c3n == u3_book_save(log_u, 1, 2, byt_p, siz_i, 0));
  check_bounds(log_u, 0, 0);
  siz_i[1] = 4;
  HOLDS(c3y == u3_book_save(log_u, 1, 2, byt_p, siz_i, 0));
  u3_book_walk itr_u;
  c3_z  len_z = 0;
  void* buf_v = 0;
  HOLDS(c3y == u3_book_walk_init(log_u, &itr_u, 1, 2));
  HOLDS(c3y == u3_book_walk_next(&itr_u, &len_z, &buf_v));
  HOLDS(8 == len_z && !memcmp(buf_v, buf_y, 8));
  free(buf_v);
  HOLDS(c3y == u3_book_walk_next(&itr_u, &len_z, &buf_v));
  HOLDS(4 == len_z && !memcmp(buf_v, buf_y, 4));
  free(buf_v);
  u3_book_walk_done(&itr_u);
  u3_book_exit(log_u);
}

static void
a_long_event_needs_its_number(void)
{
  u3_book* log_u = u3_book_init(place("long"));
  c3_z     siz_i = (3u << 20) + 5;
  uint8_t* buf_y = malloc(siz_i);
  void*    byt_p = buf_y;
  for ( c3_z i = 0; i < siz_i; i++ ) {
    buf_y[i] = (uint8_t)(i * 2654435761u >> 13);
  }
  HOLDS(c3n == u3_book_save(log_u, 5, 1, &byt_p, &siz_i, 0));
  HOLDS(c3y == u3_book_save(log_u, 5, 1, &byt_p, &siz_i, 4));
  HOLDS(c3n == u3_book_save(log_u, 5, 1, &byt_p, &siz_i, 4));
  HOLDS(c3n == u3_book_save(log_u, 7, 1, &byt_p, &siz_i, 4));
  HOLDS(c3y == u3_book_save(log_u, 6, 1, &byt_p, &siz_i, 4));
  check_bounds(log_u, 5, 6);
  u3_book_walk itr_u;
  c3_z  len_z = 0;
  void* buf_v = 0;
  HOLDS(c3y == u3_book_walk_init(log_u, &itr_u, 5, 6));
  for ( int i = 0; i < 2; i++ ) {
    HOLDS(c3y == u3_book_walk_next(&itr_u, &len_z, &buf_v));
    HOLDS(siz_i == len_z && !memcmp(buf_v, buf_y, siz_i));
    free(buf_v);
  }
  u3_book_walk_done(&itr_u);
  u3_book_exit(log_u);
  free(buf_y);
}

static void
walks(void)
{
  u3_book* log_u = u3_book_init(place("walks"));
  u3_book_walk itr_u;
  uint8_t buf_y[128];
  c3_z    len_z;
  void*   buf_v;
  HOLDS(c3y == save(log_u, 1, 200, 0));
  HOLDS(c3n == u3_book_walk_init(log_u, &itr_u, 0, 1));
  HOLDS(c3n == u3_book_walk_next(&itr_u, &len_z, &buf_v));
  HOLDS(c3n == u3_book_walk_init(log_u, &itr_u, 3, 1));
  HOLDS(c3n == u3_book_walk_init(log_u, &itr_u, 1, 201));
  HOLDS(c3n == u3_book_walk_init(log_u, &itr_u, 201, 201));
  HOLDS(c3y == u3_book_walk_init(log_u, &itr_u, 10, 150));
  uint64_t eve_d = 10;
  while ( c3y == u3_book_walk_next(&itr_u, &len_z, &buf_v) ) {
    size_t want_z = fill(buf_y, eve_d++);
    HOLDS(len_z == want_z && !memcmp(buf_v, buf_y, want_z));
    free(buf_v);
  }
  HOLDS(151 == eve_d);
  HOLDS(c3n == u3_book_walk_next(&itr_u, &len_z, &buf_v));
  u3_book_walk_done(&itr_u);
  u3_book_walk_done(&itr_u);
  HOLDS(c3y == u3_book_walk_init(log_u, &itr_u, 1, 1));
  u3_book_walk_done(&itr_u);
  HOLDS(c3n == u3_book_walk_next(&itr_u, &len_z, &buf_v));
  /* What is appended later is not walked, and a walk outlives its log. */
  HOLDS(c3y == u3_book_walk_init(log_u, &itr_u, 200, 200));
  HOLDS(c3y == save(log_u, 201, 1, 0));
  u3_book_exit(log_u);
  HOLDS(c3y == u3_book_walk_next(&itr_u, &len_z, &buf_v));
  free(buf_v);
  HOLDS(c3n == u3_book_walk_next(&itr_u, &len_z, &buf_v));
  u3_book_walk_done(&itr_u);
}

static void
metadata(void)
{
  char*    dir_c = place("meta");
  u3_book* log_u = u3_book_init(dir_c);
  struct { const char* key_c; c3_z siz_z; } keys[] = {
    { "who", 16 }, { "version", 4 }, { "fake", 1 }, { "life", 4 }
  };
  uint8_t val_y[32];
  for ( size_t i = 0; i < 4; i++ ) {
    meta met_u = { 0 };
    u3_book_read_meta(log_u, &met_u, keys[i].key_c, see_meta);
    HOLDS(met_u.siz_zs == (c3_zs)keys[i].siz_z);
    HOLDS(!met_u.buf_y[0] && !memcmp(met_u.buf_y, met_u.buf_y + 1, 31));
    memset(val_y, 1, sizeof(val_y));
    for ( c3_z siz_z = 0; siz_z < 20; siz_z++ ) {
      if ( siz_z != keys[i].siz_z ) {
        HOLDS(c3n == u3_book_save_meta(log_u, keys[i].key_c, siz_z, val_y));
      }
    }
    memset(val_y, (int)i == 2 ? 1 : 65 + (int)i, sizeof(val_y));
    HOLDS(c3y == u3_book_save_meta(log_u, keys[i].key_c, keys[i].siz_z, val_y));
  }
  u3_book_exit(log_u);
  log_u = u3_book_init(dir_c);
  for ( size_t i = 0; i < 4; i++ ) {
    meta met_u = { 0 };
    memset(val_y, (int)i == 2 ? 1 : 65 + (int)i, sizeof(val_y));
    u3_book_read_meta(log_u, &met_u, keys[i].key_c, see_meta);
    HOLDS(met_u.siz_zs == (c3_zs)keys[i].siz_z && !memcmp(met_u.buf_y, val_y, keys[i].siz_z));
  }
  meta met_u = { 0 };
  u3_book_read_meta(log_u, &met_u, "nonexistent", see_meta);
  HOLDS(-1 == met_u.siz_zs && met_u.null_i);
  HOLDS(c3n == u3_book_save_meta(log_u, "nonexistent", 4, val_y));
  u3_book_exit(log_u);
}

/* Two events in one batch, closed; returns the directory. */
static char*
two_events(const char* name_c)
{
  char*    dir_c = place(name_c);
  u3_book* log_u = u3_book_init(dir_c);
  HOLDS(c3y == save(log_u, 1, 2, 0));
  u3_book_exit(log_u);
  return dir_c;
}

/* What is intact is gone on with, as vere does. */
static void
damage(void)
{
  char*    dir_c = two_events("cut");
  u3_book* log_u;
  /* Inside the second deed. */
  HOLDS(!truncate(log_in(dir_c), size_of(dir_c) - 5));
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 1, 1);
  HOLDS(1 == read_all(log_u, 1, 1));
  HOLDS(c3y == save(log_u, 2, 1, 0));
  u3_book_exit(log_u);

  dir_c = two_events("flipped");
  flip(dir_c, size_of(dir_c) - 20);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 1, 1);
  u3_book_exit(log_u);

  /* The only event. */
  dir_c = place("checksum");
  log_u = u3_book_init(dir_c);
  HOLDS(c3y == save(log_u, 1, 1, 0));
  u3_book_exit(log_u);
  flip(dir_c, size_of(dir_c) - 12);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 0, 0);
  HOLDS(c3y == save(log_u, 1, 1, 0));
  u3_book_exit(log_u);
  flip(dir_c, size_of(dir_c) - 8);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 0, 0);
  u3_book_exit(log_u);

  dir_c = two_events("header");
  HOLDS(!truncate(log_in(dir_c), 16));
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 0, 0);
  HOLDS(c3y == save(log_u, 1, 2, 0));
  check_bounds(log_u, 1, 2);
  u3_book_exit(log_u);

  dir_c = two_events("garbage");
  int     fid_i = open(log_in(dir_c), O_WRONLY | O_APPEND);
  uint8_t bad_y[12] = { 0xde, 0xad, 0xbe, 0xef };
  HOLDS(12 == write(fid_i, bad_y, 12));
  close(fid_i);
  HOLDS(log_u = u3_book_init(dir_c));
  check_bounds(log_u, 1, 2);
  HOLDS(2 == read_all(log_u, 1, 2));
  u3_book_exit(log_u);
}

/* The caller chooses, and a log with damage stays as it is. */
static void
options_of_opening(void)
{
  char*            dir_c = two_events("chosen");
  deedbook_options opt_u = { .siz_i = sizeof(opt_u) };
  u3_book*         log_u;
  HOLDS(log_u = deedbook_open(dir_c, 0));
  check_bounds(log_u, 1, 2);
  HOLDS(!deedbook_open(dir_c, 0));
  u3_book_exit(log_u);

  opt_u.mod_c = "r";
  HOLDS(log_u = deedbook_open(dir_c, &opt_u));
  HOLDS(2 == read_all(log_u, 1, 2));
  HOLDS(c3n == save(log_u, 3, 1, 0));
  u3_book_exit(log_u);
  HOLDS(!deedbook_open(place("none"), &opt_u));
  opt_u.mod_c = "x";
  HOLDS(!deedbook_open(dir_c, &opt_u));
  opt_u.dur_c = "manual";
  opt_u.max_d = 64;
  HOLDS(log_u = deedbook_open(place("limited"), &opt_u));
  HOLDS(c3y == save(log_u, 1, 1, 0));
  HOLDS(c3y == deedbook_sync(log_u));
  uint8_t big_y[65] = { 0 };
  void*   byt_p[1] = { big_y };
  c3_z    siz_i[1] = { sizeof(big_y) };
  HOLDS(c3n == u3_book_save(log_u, 2, 1, byt_p, siz_i, 0));
  siz_i[0] = 64;
  HOLDS(c3y == u3_book_save(log_u, 2, 1, byt_p, siz_i, 0));
  u3_book_exit(log_u);
  HOLDS(c3n == deedbook_sync(0));

  flip(dir_c, size_of(dir_c) - 20);
  off_t siz_o = size_of(dir_c);
  HOLDS(!deedbook_open(dir_c, 0));
  HOLDS(siz_o == size_of(dir_c));
  opt_u = (deedbook_options){ .siz_i = sizeof(opt_u), .rec_c = "spec" };
  HOLDS(log_u = deedbook_open(dir_c, &opt_u));
  check_bounds(log_u, 1, 1);
  u3_book_exit(log_u);

  deedbook_options bad_u[4] = { { .siz_i = 8 } };
  bad_u[1] = (deedbook_options){ .siz_i = sizeof(opt_u), .mod_c = "w" };
  bad_u[2] = (deedbook_options){ .siz_i = sizeof(opt_u), .rec_c = "all" };
  bad_u[3] = (deedbook_options){ .siz_i = sizeof(opt_u), .dur_c = "bytes:0" };
  for ( int i = 0; i < 4; i++ ) {
    HOLDS(!deedbook_open(dir_c, &bad_u[i]));
  }
}

/* What could not be synced is there, and not acknowledged. */
static void
a_failed_sync(void)
{
  char*    dir_c = place("gone");
  u3_book* log_u = u3_book_init(dir_c);
  HOLDS(c3y == save(log_u, 1, 1, 0));
  HOLDS(!unlink(log_in(dir_c)));
  HOLDS(c3n == save(log_u, 2, 1, 0));
  check_bounds(log_u, 1, 2);
  HOLDS(c3n == save(log_u, 3, 1, 0));
  u3_book_exit(log_u);

  deedbook_options opt_u = { .siz_i = sizeof(opt_u), .dur_c = "manual" };
  dir_c = place("gone-unsynced");
  HOLDS(log_u = deedbook_open(dir_c, &opt_u));
  HOLDS(c3y == save(log_u, 1, 1, 0));
  HOLDS(!unlink(log_in(dir_c)));
  HOLDS(c3n == deedbook_sync(log_u));
  u3_book_exit(log_u);
}

static void
no_log(void)
{
  char*    dir_c = place("magic");
  u3_book* log_u = u3_book_init(dir_c);
  u3_book_exit(log_u);
  flip(dir_c, 0);
  HOLDS(!u3_book_init(dir_c));
  flip(dir_c, 0);
  flip(dir_c, 4);
  HOLDS(!u3_book_init(dir_c));
  flip(dir_c, 4);
  HOLDS(!truncate(log_in(dir_c), 8));
  HOLDS(!u3_book_init(dir_c));
  HOLDS(!u3_book_init("/nonexistent/deeply"));
}

/* The answer, with "none" for null. */
static const char*
detected(const char* path_c)
{
  const char* name_c = deedbook_detect(path_c);
  return name_c ? name_c : "none";
}

static void
formats_are_detected(void)
{
  char* dir_c = place("0i0");
  HOLDS(!strcmp("none", detected(dir_c)));
  HOLDS(!strcmp("none", detected("/nonexistent/deeply")));
  u3_book_exit(u3_book_init(dir_c));
  HOLDS(!strcmp("book", detected(dir_c)));
  HOLDS(!strcmp("book", detected(log_in(dir_c))));
  HOLDS(!strcmp("pier", detected(home_c)));
  /* Segments beside a book: nobody can tell which of the two is meant. */
  char path_c[4200];
  snprintf(path_c, sizeof(path_c), "%s/00000000000000000000.wal", dir_c);
  close(open(path_c, O_WRONLY | O_CREAT, 0644));
  HOLDS(!strcmp("none", detected(dir_c)));
  HOLDS(!unlink(path_c));
  dir_c = place("segments");
  snprintf(path_c, sizeof(path_c), "%s/00000000000000000000.wal", dir_c);
  close(open(path_c, O_WRONLY | O_CREAT, 0644));
  HOLDS(!strcmp("wal", detected(dir_c)));
}

static void
null_pointers(void)
{
  c3_d  num_d;
  c3_z  len_z;
  void* buf_v;
  meta  met_u = { 0 };
  u3_book_walk itr_u;
  u3_book* log_u = u3_book_init(place("null"));
  HOLDS(!u3_book_init(0));
  HOLDS(!deedbook_detect(0));
  u3_book_exit(0);
  u3_book_stat(0);
  HOLDS(c3n == u3_book_gulf(0, &num_d, &num_d));
  HOLDS(c3n == u3_book_gulf(log_u, 0, &num_d));
  HOLDS(c3n == save(0, 1, 1, 0));
  HOLDS(c3n == u3_book_save(log_u, 1, 1, 0, 0, 0));
  HOLDS(c3n == u3_book_read(log_u, 0, 1, 1, 0));
  u3_book_read_meta(0, &met_u, "who", see_meta);
  HOLDS(-1 == met_u.siz_zs);
  met_u.siz_zs = 0;
  u3_book_read_meta(log_u, &met_u, 0, see_meta);
  HOLDS(-1 == met_u.siz_zs);
  HOLDS(c3n == u3_book_save_meta(log_u, "who", 16, 0));
  HOLDS(c3n == u3_book_walk_init(0, &itr_u, 1, 1));
  HOLDS(c3n == u3_book_walk_init(log_u, 0, 1, 1));
  HOLDS(c3n == u3_book_walk_next(0, &len_z, &buf_v));
  u3_book_walk_done(0);
  u3_book_exit(log_u);
}

static void
a_backup_beside_the_writer(void)
{
  char*    dir_c = place("source");
  char*    des_c = place("copies");
  char     cop_c[4200], not_c[4200];
  u3_book* log_u = u3_book_init(dir_c);
  snprintf(cop_c, sizeof(cop_c), "%s/copy", des_c);
  snprintf(not_c, sizeof(not_c), "%s/nowhere/copy", des_c);
  HOLDS(c3y == save(log_u, 1, 200, 0));
  HOLDS(c3y == u3_book_backup(dir_c, cop_c));
  HOLDS(c3y == save(log_u, 201, 100, 0));
  HOLDS(c3y == u3_book_backup(dir_c, cop_c));
  HOLDS(c3n == u3_book_backup(dir_c, not_c));
  HOLDS(c3n == u3_book_backup(dir_c, dir_c));
  HOLDS(c3n == u3_book_backup(dir_c, 0));
  HOLDS(c3n == u3_book_backup(0, cop_c));
  u3_book_exit(log_u);
  log_u = u3_book_init(cop_c);
  check_bounds(log_u, 1, 300);
  HOLDS(300 == read_all(log_u, 1, 300));
  u3_book_exit(log_u);
}

int
main(int argc, char** argv)
{
  if ( argc < 2 ) {
    fprintf(stderr, "usage: book DIRECTORY\n");
    return 2;
  }
  home_c = argv[1];
  an_empty_log();
  what_is_saved_is_read();
  numbers_follow_each_other();
  a_directory_names_its_epoch();
  sizes();
  a_long_event_needs_its_number();
  walks();
  metadata();
  damage();
  options_of_opening();
  a_failed_sync();
  no_log();
  formats_are_detected();
  null_pointers();
  a_backup_beside_the_writer();
  u3_book_stat(place("saved"));
  printf("%s\n", failed_i ? "failed" : "ok");
  return failed_i;
}
