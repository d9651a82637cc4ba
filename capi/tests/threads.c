/* The functions of book.h called by several threads. Vere calls them from libuv's pool: with DEEDBOOK_UV each job
** is an item of the pool, else a thread. A directory is the argument; the program prints each failure, and exits
** with 1.
*/
#include "common.h"

#include <sched.h>

#ifdef DEEDBOOK_UV
#  include <uv.h>
#else
#  include <pthread.h>
#endif

#define SAVES   200
#define READERS 3
#define ROUNDS  100

/* The jobs share a log. Members that change are read and written with GET and SET. */
typedef struct {
  u3_book* log_u;
  uint64_t saved_d;           /* last event whose save returned c3y */
  int      done_i;            /* the saver has ended */
  int      there_i[2];        /* rounds that each of two savers has begun */
  int      won_i[2];          /* saves that returned c3y, of each of two savers */
  uint8_t  who_y[ROUNDS + 1]; /* the saver, 1 or 2, whose save of an event returned c3y */
} shared;

typedef struct {
  void   (*work_f)(shared*, int, int*);
  shared*  all_u;
  int      num_i;   /* number of the job among its equals */
  int      seen_i;  /* rounds in which a reader found events */
  int      bad_i;   /* what did not hold */
} job;

#define GET(of)      __atomic_load_n(&(of), __ATOMIC_SEQ_CST)
#define SET(of, val) __atomic_store_n(&(of), val, __ATOMIC_SEQ_CST)

static job jobs_u[1 + READERS];

#ifdef DEEDBOOK_UV
static void
work(uv_work_t* req_u)
{
  job* job_u = req_u->data;
  job_u->work_f(job_u->all_u, job_u->num_i, &job_u->bad_i);
}

static void
run(int len_i)
{
  uv_loop_t lop_u;
  uv_work_t req_u[1 + READERS];
  HOLDS(!uv_loop_init(&lop_u));
  for ( int i = 0; i < len_i; i++ ) {
    req_u[i].data = &jobs_u[i];
    HOLDS(!uv_queue_work(&lop_u, &req_u[i], work, 0));
  }
  HOLDS(!uv_run(&lop_u, UV_RUN_DEFAULT));
  HOLDS(!uv_loop_close(&lop_u));
}
#else
static void*
work(void* ptr_v)
{
  job* job_u = ptr_v;
  job_u->work_f(job_u->all_u, job_u->num_i, &job_u->bad_i);
  return 0;
}

static void
run(int len_i)
{
  pthread_t ted_u[1 + READERS];
  for ( int i = 0; i < len_i; i++ ) {
    HOLDS(!pthread_create(&ted_u[i], 0, work, &jobs_u[i]));
  }
  for ( int i = 0; i < len_i; i++ ) {
    HOLDS(!pthread_join(ted_u[i], 0));
  }
}
#endif

/* Save batches of 1 to 5 events. After the tenth, wait until each reader has met events. */
static void
save_batches(shared* all_u, int num_i, int* bad_i)
{
  uint64_t eve_d = 1;
  (void)num_i;
  for ( int i = 0; i < SAVES; i++ ) {
    uint64_t len_d = 1 + (uint64_t)i % 5;
    *bad_i += c3y != save(all_u->log_u, eve_d, len_d, 0);
    eve_d += len_d;
    SET(all_u->saved_d, eve_d - 1);
    for ( int j = 1; 10 == i && j <= READERS; j++ ) {
      while ( !GET(jobs_u[j].seen_i) ) {
        sched_yield();
      }
    }
  }
  SET(all_u->done_i, 1);
}

static int
walk_wrong(u3_book* log_u, uint64_t fir_d, uint64_t las_d)
{
  u3_book_walk itr_u;
  uint8_t      buf_y[128];
  c3_z         len_z;
  void*        buf_v;
  int          bad_i = c3y != u3_book_walk_init(log_u, &itr_u, fir_d, las_d);
  for ( ; c3y == u3_book_walk_next(&itr_u, &len_z, &buf_v); fir_d++ ) {
    size_t want_z = fill(buf_y, fir_d);
    bad_i += len_z != want_z || memcmp(buf_v, buf_y, want_z);
    free(buf_v);
  }
  u3_book_walk_done(&itr_u);
  return bad_i + (fir_d != las_d + 1);
}

/* The newest events, read and walked, and the bounds: no saved event is missing, and none goes. */
static void
ask(shared* all_u, int num_i, int* bad_i)
{
  uint64_t was_d = 0;
  while ( !GET(all_u->done_i) ) {
    uint64_t saved_d = GET(all_u->saved_d);
    c3_d     low_d = 99, hig_d = 99;
    *bad_i += c3y != u3_book_gulf(all_u->log_u, &low_d, &hig_d);
    *bad_i += hig_d < saved_d || hig_d < was_d || low_d != (hig_d ? 1 : 0);
    was_d = hig_d;
    if ( !hig_d ) {
      continue;
    }
    uint64_t fir_d = hig_d > 40 ? hig_d - 39 : 1;
    uint64_t len_d = hig_d + 1 - fir_d;
    if ( 1 == num_i ) {
      *bad_i += walk_wrong(all_u->log_u, fir_d, hig_d);
    }
    else if ( 2 == num_i ) {
      *bad_i += (int)len_d != read_all(all_u->log_u, fir_d, len_d);
    }
    SET(jobs_u[num_i].seen_i, jobs_u[num_i].seen_i + 1);
  }
}

static void
threads_read_while_one_saves(void)
{
  char*  dir_c = place("saver");
  shared all_u = { .log_u = u3_book_init(dir_c) };
  for ( int i = 0; i <= READERS; i++ ) {
    jobs_u[i] = (job){ .work_f = i ? ask : save_batches, .all_u = &all_u, .num_i = i };
  }
  run(1 + READERS);
  for ( int i = 0; i <= READERS; i++ ) {
    HOLDS(!jobs_u[i].bad_i);
    HOLDS(!i || jobs_u[i].seen_i);
  }
  u3_book_exit(all_u.log_u);
  all_u.log_u = u3_book_init(dir_c);
  check_bounds(all_u.log_u, 1, all_u.saved_d);
  HOLDS((int)all_u.saved_d == read_all(all_u.log_u, 1, all_u.saved_d));
  u3_book_exit(all_u.log_u);
}

/* The bytes of an event depend on its saver. */
static c3_z
fill_by(uint8_t* buf_y, uint64_t eve_d, uint8_t who_y)
{
  c3_z len_z = fill(buf_y, eve_d);
  memset(buf_y, who_y, 4);
  return len_z;
}

/* Two jobs save the same number in each round, at the same time. */
static void
save_same(shared* all_u, int num_i, int* bad_i)
{
  for ( int i = 1; i <= ROUNDS; i++ ) {
    uint8_t buf_y[128];
    void*   byt_p[1] = { buf_y };
    c3_z    siz_i[1] = { fill_by(buf_y, (uint64_t)i, (uint8_t)(num_i + 1)) };
    SET(all_u->there_i[num_i], i);
    while ( GET(all_u->there_i[!num_i]) < i ) {
      sched_yield();
    }
    if ( c3y == u3_book_save(all_u->log_u, (uint64_t)i, 1, byt_p, siz_i, 0) ) {
      *bad_i += 0 != __atomic_exchange_n(&all_u->who_y[i], (uint8_t)(num_i + 1), __ATOMIC_SEQ_CST);
      all_u->won_i[num_i]++;
    }
  }
}

static c3_o
see_by(void* ptr_v, c3_d eve_d, c3_z len_z, void* buf_v)
{
  shared* all_u = ptr_v;
  uint8_t buf_y[128];
  HOLDS(len_z == fill_by(buf_y, eve_d, all_u->who_y[eve_d]) && !memcmp(buf_v, buf_y, len_z));
  return c3y;
}

static void
one_of_two_saves_wins_a_number(void)
{
  char*  dir_c = place("savers");
  shared all_u = { .log_u = u3_book_init(dir_c) };
  for ( int i = 0; i < 2; i++ ) {
    jobs_u[i] = (job){ .work_f = save_same, .all_u = &all_u, .num_i = i };
  }
  run(2);
  HOLDS(!jobs_u[0].bad_i && !jobs_u[1].bad_i);
  HOLDS(ROUNDS == all_u.won_i[0] + all_u.won_i[1]);
  for ( int again_i = 0; again_i < 2; again_i++ ) {
    check_bounds(all_u.log_u, 1, ROUNDS);
    HOLDS(c3y == u3_book_read(all_u.log_u, &all_u, 1, ROUNDS, see_by));
    u3_book_exit(all_u.log_u);
    all_u.log_u = u3_book_init(dir_c);
  }
  u3_book_exit(all_u.log_u);
}

int
main(int argc, char** argv)
{
  if ( argc < 2 ) {
    fprintf(stderr, "usage: threads DIRECTORY\n");
    return 2;
  }
  home_c = argv[1];
  /* Each job needs a thread of the pool. */
  setenv("UV_THREADPOOL_SIZE", "4", 1);
  threads_read_while_one_saves();
  one_of_two_saves_wins_a_number();
  printf("%s\n", failed_i ? "failed" : "ok");
  return failed_i;
}
