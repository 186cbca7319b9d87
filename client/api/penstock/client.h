/* Penstock client, C ABI.
 *
 * A rank attaches to the daemon of its node and takes batches step by step. In
 * local mode tensors are read-only views of the daemon's arena; nothing is
 * copied. Everything here is plain C: no gRPC, no C++ type.
 *
 * Threads: a ps_feed may be used by one thread at a time; ps_abort() and
 * ps_step_release() may be called from any. A forked child must not use a feed
 * of its parent: calls answer PS_FORKED there, and closing only closes.
 * Errors: functions return a ps_code and, where it is not PS_OK or PS_END, fill
 * *error when that is not NULL.
 */
#ifndef PENSTOCK_CLIENT_H_
#define PENSTOCK_CLIENT_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PS_API __attribute__((visibility("default")))
#else
#define PS_API
#endif

typedef enum ps_code {
  PS_OK = 0,
  PS_END = 1,           /* the data has ended, for all ranks at this step */
  PS_INVALID = 2,       /* usage: an argument, the feed, coordinates */
  PS_REFUSED = 3,       /* attach refused: a field does not agree, fenced, … */
  PS_TIMEOUT = 4,       /* no batch within the deadline; says who is waited for */
  PS_UNAVAILABLE = 5,   /* no daemon there, or it went and did not come back */
  PS_DATA_LOSS = 6,     /* damaged data, named */
  PS_ABORTED = 7,       /* ps_abort() */
  PS_FORKED = 8,        /* used in a forked child */
  PS_FAILED = 9,        /* anything else */
  PS_AGAIN = 10         /* ps_poll(): not ready yet, call again */
} ps_code;

typedef struct ps_error {
  ps_code code;
  char message[2048]; /* where, what, found, expected, what to do */
} ps_error;

typedef struct ps_feed ps_feed;
typedef struct ps_step ps_step;

typedef struct ps_attach_options {
  size_t struct_bytes;     /* sizeof(ps_attach_options) */
  const char* address;     /* socket folder of the daemon, or "tcp:HOST:PORT";
                              NULL: PENSTOCK_SERVER, then the default folder */
  const char* job;         /* NULL: the feed's name */
  const char* feed;        /* path of the feed file */
  const char* incarnation; /* id of this run; NULL: from the launcher's
                              environment, or made up when data_world is 1 */
  const char* resume;      /* "new", "step:K", or the text of ps_state_dict() */
  uint32_t data_rank;      /* this rank's data coordinate … */
  uint32_t data_world;     /* … of how many; 0 is 1 */
  int ack_leader;          /* 1: its acknowledgements count for the coordinate */
  int explicit_ack;        /* 0: asking for step k+1 acknowledges step k */
  int takeover;            /* open a generation although ranks are connected */
  uint64_t deadline_ms;       /* of each wait; 0: 120,000 */
  uint64_t first_deadline_ms; /* of the first batch; 0: 600,000 */
  uint64_t absent_deadline_ms; /* how long ps_attach() waits for a daemon that is
                                  not there; 0: first_deadline_ms */
  uint32_t ranks_per_node;     /* data rank r is on node r / ranks_per_node, for
                                  `cut: local`; 0: all on one; equal on all ranks */
  /* Speeds of the data ranks, relative to each other: "1,1,0.5", one each. Ranks
   * get units in proportion, and the feed says `uneven: mask`. NULL: all alike;
   * equal on all ranks. */
  const char* speeds;
  /* Context-parallel coordinate, of how many (0 is 1), and which slice of token
   * tensors it is given: "contiguous", "head_tail", "per_document", "striped";
   * NULL or "off": all of them. Size and cut are equal on all ranks. */
  uint32_t cp_rank, cp_size;
  const char* cp_cut;
  /* Pipeline stage, of how many (0 is 1): the first is given inputs, the last
   * targets, all of them metadata, as the outputs of the feed say (`role`). */
  uint32_t pp_rank, pp_size;
} ps_attach_options;

typedef enum ps_dtype {
  PS_U8 = 1,
  PS_I32 = 2,
  PS_I64 = 3,
  PS_F32 = 4
} ps_dtype;

#define PS_DIMS_MAX 8

/* A tensor of a step or microbatch; data is valid until the step is released.
 * The first dimension is units: samples or packs, then masked ones; with
 * buckets, samples of the microbatch. */
typedef struct ps_tensor {
  const char* name; /* lives as long as the step */
  ps_dtype dtype;
  uint32_t dims;
  uint64_t shape[PS_DIMS_MAX];
  uint64_t strides[PS_DIMS_MAX]; /* bytes */
  const void* data;              /* read-only */
} ps_tensor;

typedef struct ps_feed_info {
  size_t struct_bytes;
  uint64_t generation, start_step;
  uint64_t total_steps; /* 0: the data never ends */
  uint64_t global_batch; /* of the first step */
  uint64_t microbatches, batch_bytes; /* of the largest step */
  const char* job;
  const char* order_digest; /* hex */
  const char* content_digest;
  const char* notes; /* lines; empty: none */
  int remote;
} ps_feed_info;

typedef struct ps_step_info {
  size_t struct_bytes;
  uint64_t number, bytes;
  uint64_t samples, global_samples; /* of this rank, of all ranks */
  uint64_t tokens, global_tokens;   /* likewise, of its slice where there is a
                                       cp_cut; 0: the feed has no lengths */
  /* First dimension of the tensors: samples or packs, then masked units
   * (zeros). With buckets microbatches, each with tensors of its own. The same
   * on all ranks, whole microbatches. */
  uint64_t units, microbatches;
  /* The mean loss of this rank's samples (with lengths: of its tokens) times
   * this, averaged over the data ranks (with a context-parallel cut over its
   * ranks too), is the mean over all. */
  double loss_scale;
  uint64_t wait_ns; /* how long ps_next() waited */
  uint64_t plan_ns, fetch_ns, decode_ns, assemble_ns, total_ns; /* of the step */
  const char* batch_digest;  /* hex, over this rank's items */
  const char* global_digest; /* hex, over all items; may be empty */
} ps_step_info;

typedef struct ps_microbatch_info {
  size_t struct_bytes;
  const char* bucket;    /* lives as long as the step; empty: no buckets */
  uint64_t units;        /* first dimension of its tensors without buckets */
  uint64_t first_sample; /* in ps_step_sample_id() … */
  uint64_t samples;      /* … and how many; 0: all of it is masked */
} ps_microbatch_info;

PS_API const char* ps_version(void);

/* Attaches; waits at most absent_deadline_ms for a daemon to be there (then
 * PS_UNAVAILABLE), first_deadline_ms for its answer. */
PS_API ps_code ps_attach(const ps_attach_options* options, ps_feed** feed,
                         ps_error* error);
PS_API ps_code ps_feed_get_info(ps_feed* feed, ps_feed_info* info);

/* Waits for the next step. PS_END when the data has ended. A daemon that goes
 * away is waited for until the deadline; the bytes are the same. */
PS_API ps_code ps_next(ps_feed* feed, ps_step** step, ps_error* error);

/* The same in pieces of at most `slice_ms`, for callers that look after signals
 * in between: PS_AGAIN when the piece passed without a batch. The deadline
 * counts from the first piece. */
PS_API ps_code ps_poll(ps_feed* feed, uint64_t slice_ms, ps_step** step,
                       ps_error* error);

PS_API ps_code ps_step_get_info(const ps_step* step, ps_step_info* info);
PS_API uint32_t ps_step_tensor_count(const ps_step* step);
/* The whole share of the rank. PS_INVALID: no such tensor; the feed has
 * buckets, so that microbatches differ in shape */
PS_API ps_code ps_step_tensor(const ps_step* step, uint32_t index,
                              ps_tensor* tensor);
/* Rows of one microbatch. PS_INVALID: no such microbatch or tensor */
PS_API ps_code ps_step_microbatch(const ps_step* step, uint32_t microbatch,
                                  uint32_t index, ps_tensor* tensor);
/* PS_INVALID: no such microbatch */
PS_API ps_code ps_step_get_microbatch_info(const ps_step* step,
                                           uint32_t microbatch,
                                           ps_microbatch_info* info);
/* NULL: no such sample. */
PS_API const char* ps_step_sample_id(const ps_step* step, uint32_t sample);
PS_API const char* ps_step_item_digest(const ps_step* step, uint32_t sample);
/* Gives the slot back; never blocks. Tensors of the step are invalid then. */
PS_API void ps_step_release(ps_step* step);

/* The optimizer step is finished; explicit_ack only. */
PS_API ps_code ps_ack(ps_feed* feed, uint64_t step, ps_error* error);

/* Text of the cursor: the same on all ranks, before and after the first batch.
 * Names the step after the last one that ps_next() gave. Returns the bytes
 * needed with the final zero; writes at most `size`. */
PS_API size_t ps_state_dict(const ps_feed* feed, char* text, size_t size);

/* A durable name for the position after the last step given by ps_next(). */
PS_API ps_code ps_checkpoint(ps_feed* feed, const char* name, ps_error* error);

/* Ends a wait of another thread with PS_ABORTED, and every later one. */
PS_API void ps_abort(ps_feed* feed);

/* Detaches and frees; steps that are not released stay valid. Never blocks for
 * more than a second. */
PS_API void ps_close(ps_feed* feed);

#ifdef __cplusplus
}
#endif

#endif /* PENSTOCK_CLIENT_H_ */
