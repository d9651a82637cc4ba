/* The functions u3_book_* of Urbit's Book, and three functions deedbook_*, over deedbook.
**
** Signatures and return values of u3_book_* are those of vere's pkg/vere/db/book.h. c3y is 0, c3n is 1. No
** function prints to standard output; errors are lines on standard error. A panic of the library
** becomes c3n, or a null pointer.
**
** Functions may be called by several threads, except that a walk belongs to one thread at a time, and
** u3_book_exit() is the last call with its handle. One log is open for writing once: a second
** u3_book_init() of it fails, in this process as in any other.
*/
#ifndef U3_VERE_DB_BOOK_H
#define U3_VERE_DB_BOOK_H

/* vere's types, where its headers are there; else the same types. C3_TYPES_H guards vere's own. */
#if !defined(C3_TYPES_H) && !defined(DEEDBOOK_OWN_TYPES) && defined(__has_include)
#  if __has_include("c3/c3.h")
#    include "c3/c3.h"
#    define DEEDBOOK_HAS_C3
#  endif
#endif

#if !defined(C3_TYPES_H) && !defined(DEEDBOOK_HAS_C3)
#  include <inttypes.h>
#  include <stddef.h>
#  include <stdint.h>
#  include <sys/types.h>

  typedef char     c3_c;   /* a character */
  typedef int      c3_i;   /* an int */
  typedef uint8_t  c3_y;   /* a byte */
  typedef uint32_t c3_w;   /* 32 bits */
  typedef uint32_t c3_l;   /* 31 bits: a mug */
  typedef uint64_t c3_d;   /* 64 bits */
  typedef uint8_t  c3_o;   /* a loobean */
  typedef size_t   c3_z;   /* a size */
  typedef ssize_t  c3_zs;  /* a size, or less than 0 */

#  define c3y 0            /* yes */
#  define c3n 1            /* no */
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* An open log. */
typedef struct _u3_book u3_book;

/* A walk over events, as large as vere's. The members are the library's: set them to nothing. */
typedef struct _u3_book_walk {
  void* ptr_v;  /* what u3_book_walk_done() releases */
  c3_d  nex_d;  /* next event */
  c3_d  las_d;  /* last event */
  c3_d  off_d;  /* not used */
  c3_o  liv_o;  /* c3y while there may be more */
} u3_book_walk;

/* u3_book_init(): open the log in the directory [pax_c] for reading and writing.
**
** It is created if it is missing, with the directory, whose parent must be there. The N of a
** directory 0iN is the last event before the log. What a crash left after the last intact event is
** cut off, and saved beside the log unless it is all zeros; so is, with a line on standard error,
** what damage leaves of events that were acknowledged.
**
** Returns null where this is no log, or it is open for writing already.
*/
u3_book*
u3_book_init(const c3_c* pax_c);

/* How deedbook_open() opens a log. A member of 0, or a null text, stands for the default. */
typedef struct _deedbook_options {
  c3_z        siz_i;  /* sizeof(deedbook_options), always */
  const c3_c* mod_c;  /* "a" append, and create what is missing (default); "r" read; "x" create */
  const c3_c* rec_c;  /* what opening cuts: "valid" a torn end (default), "acknowledged", "spec" */
  const c3_c* dur_c;  /* when events are synced: "always" (default), "interval:MS", "bytes:N", "manual", "none" */
  c3_d        max_d;  /* the limit of an event, mug and jam, in bytes (default: 4 GiB) */
} deedbook_options;

/* deedbook_open(): open the log in the directory [pax_c] as [opt_u] says; null for the defaults.
**
** Not of vere. Damage of acknowledged events is refused with a line on standard error, and the log stays
** as it is; u3_book_init() goes on with what is intact. All functions take the handle.
**
** Returns null where u3_book_init() does, for such damage, for an option that is not known, with "r" for a
** missing log, and with "x" for an existing log.
*/
u3_book*
deedbook_open(const c3_c* pax_c, const deedbook_options* opt_u);

/* deedbook_sync(): wait until all events saved so far are on stable storage. For a log that was opened with
** another durability than "always": its u3_book_save() returns c3y for events in memory of the system.
*/
c3_o
deedbook_sync(u3_book* txt_u);

/* u3_book_exit(): sync and close a log. Null is fine.
*/
void
u3_book_exit(u3_book* txt_u);

/* u3_book_stat(): print what is in the log [pax_c] (its directory, or its book.log) to standard error.
*/
void
u3_book_stat(const c3_c* pax_c);

/* u3_book_backup(): copy the log in the directory [pax_c] to the directory [des_c], whose parent must be
** there, or bring such a copy up to date. Vere has no such function.
**
** The log may be open for writing, in this process or in another one. The copy has every event that was
** acknowledged before the call; new events are read back from it, and it is on stable storage when this
** returns. A pier, or any other log of deedbook, may be copied alike. A copy that was interrupted is
** continued by the next call.
**
** c3n where the log is damaged, or [des_c] is no earlier state of it: [des_c] stays as it is then.
*/
c3_o
u3_book_backup(const c3_c* pax_c, const c3_c* des_c);

/* u3_book_gulf(): first and last event; 0 and 0 while there is none. Of a log in the layout slots, [low_d]
** is the event before the first one, as vere's head gives it.
*/
c3_o
u3_book_gulf(u3_book* txt_u, c3_d* low_d, c3_d* hig_d);

/* u3_book_save(): append [len_d] events, the first of which gets the number [eve_d]; durable when it
** returns c3y. c3n: none of them is acknowledged. After a failed sync, or a failed write that could not
** be cut off again, they may be there all the same, and later saves fail: close the log, open it again,
** and ask u3_book_gulf().
**
** [byt_p] and [siz_i] have a buffer (4 bytes of mug, then the jam) and its size for each event. The
** number must follow the last event; in a log without events it must be [epo_d] + 1, which may change
** the event that the log begins after.
*/
c3_o
u3_book_save(u3_book* txt_u,
             c3_d     eve_d,
             c3_d     len_d,
             void**   byt_p,
             c3_z*    siz_i,
             c3_d     epo_d);

/* u3_book_read(): call [read_f] with [ptr_v] and each of [len_d] events from [eve_d] on: its number,
** size and buffer, which is the library's and ends with the call. c3n if an event is missing or
** damaged, or [read_f] returned it.
*/
c3_o
u3_book_read(u3_book* txt_u,
             void*    ptr_v,
             c3_d     eve_d,
             c3_d     len_d,
             c3_o  (*read_f)(void*, c3_d, c3_z, void*));

/* u3_book_read_meta(): call [read_f] with [ptr_v] and the size and bytes of a key of the metadata:
** "who" (16), "version" (4), "fake" (1), "life" (4). Zeros where nothing was saved; the size -1 and a
** null pointer for any other key, and on errors.
*/
void
u3_book_read_meta(u3_book*    txt_u,
                  void*       ptr_v,
                  const c3_c* key_c,
                  void     (*read_f)(void*, c3_zs, void*));

/* u3_book_save_meta(): change a key of the metadata, durably. c3n for an unknown key, or a value
** [val_p] whose size [val_z] is not the key's.
*/
c3_o
u3_book_save_meta(u3_book*    txt_u,
                  const c3_c* key_c,
                  c3_z        val_z,
                  void*       val_p);

/* u3_book_walk_init(): begin a walk over the events [nex_d] to [las_d], both included. c3n unless all
** of them are there; u3_book_walk_done() is then not needed.
*/
c3_o
u3_book_walk_init(u3_book*      txt_u,
                  u3_book_walk* itr_u,
                  c3_d          nex_d,
                  c3_d          las_d);

/* u3_book_walk_next(): the next event: its size, and a buffer of mug and jam that the caller frees
** with free(). c3n after the last one, and on errors.
*/
c3_o
u3_book_walk_next(u3_book_walk* itr_u, c3_z* len_z, void** buf_v);

/* u3_book_walk_done(): end a walk. It may outlive its log's handle.
*/
void
u3_book_walk_done(u3_book_walk* itr_u);

/* deedbook_detect(): the name of the format of the log at [pax_c], or of a saved end of one: "book",
** "pier", "wal" or "ledger". The string is the library's and stays. Null where no log is, and, with a
** line on standard error, where that is not certain: of a directory with logs of two formats, of a
** renamed book.log, and where the system refuses to look.
**
** Not of vere. It takes a pier for a pier, which u3_book_init() does not.
*/
const c3_c*
deedbook_detect(const c3_c* pax_c);

#ifdef __cplusplus
}
#endif

#endif /* ifndef U3_VERE_DB_BOOK_H */
