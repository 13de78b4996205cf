// The gateway's programs in the kernel: they select the packets that the daemon receives, and pass
// every packet after a heartbeat timeout.
//
// Data and repairs towards the mobile are copied when the driver takes them, after the interface's
// queue. ACKs that only advance pass at once and are reported; the others wait for the daemon's
// verdict. What a sender resends of data that was repaired leaves with the timestamp of the
// original. Read Documentation/bpf/ringbuf.rst and net/sched/cls_bpf.c before working on this file.

#include <linux/bpf.h>

#include "segment.bpf.h"

#define SEC(name) __attribute__((section(name), used))
#define uint_of(name, value) int (*name)[value]

static void *(*map_lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*map_update)(void *map, const void *key, const void *value, __u64 flags) =
    (void *)BPF_FUNC_map_update_elem;
static long (*map_delete)(void *map, const void *key) = (void *)BPF_FUNC_map_delete_elem;
static long (*store_bytes)(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len,
                           __u64 flags) = (void *)BPF_FUNC_skb_store_bytes;
static long (*replace_checksum)(struct __sk_buff *skb, __u32 offset, __u64 from, __u64 to,
                                __u64 flags) = (void *)BPF_FUNC_l4_csum_replace;
static __u64 (*ktime_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static long (*redirect)(__u32 ifindex, __u64 flags) = (void *)BPF_FUNC_redirect;
static void *(*ringbuf_reserve)(void *ringbuf, __u64 size, __u64 flags) =
    (void *)BPF_FUNC_ringbuf_reserve;
static void (*ringbuf_submit)(void *data, __u64 flags) = (void *)BPF_FUNC_ringbuf_submit;
static void (*ringbuf_discard)(void *data, __u64 flags) = (void *)BPF_FUNC_ringbuf_discard;

// To the next program and then to the stack: TCX_NEXT, and for clsact TC_ACT_UNSPEC.
#define PASS (-1)
#define DROP 2 // TC_ACT_SHOT

#define PACKET_OUTGOING 4

// Set by the daemon before it loads this.
volatile const __u32 MARK = 0;         // of what the daemon sends
volatile const __u32 AIR = 0;          // index of the air interface
volatile const __u32 REINJECTION = 0;  // of the device through which the daemon returns packets
volatile const __u32 OBSERVE = 0;      // divert nothing
volatile const __u64 HEARTBEAT_TIMEOUT_NS = 50000000;

struct flow {
    __u64 acked; // the highest ACK that has passed
    __u64 state;
    __u64 packets; // of wire size, sent towards the mobile
    __u64 bytes;   // of payload
    __u64 unseen;  // packets from the mobile that passed unreported since the last report
};

#define ACKED_KNOWN 1
#define IGNORED 2  // the operator does not want it mended
#define SYN_SEEN 4 // the next ACK may begin another connection

// An ACK that lies further below the highest one belongs to another connection.
#define OVERTAKEN (1 << 20)

struct {
    uint_of(type, BPF_MAP_TYPE_LRU_HASH);
    uint_of(max_entries, 65536);
    struct flow_key *key;
    struct flow *value;
} flows SEC(".maps");

// In nanoseconds of CLOCK_MONOTONIC: the daemon's last heartbeat, the last one that timed out, and
// the time until which there may be timestamps to restore.
struct {
    uint_of(type, BPF_MAP_TYPE_ARRAY);
    uint_of(max_entries, 3);
    __u32 *key;
    __u64 *value;
} heartbeat SEC(".maps");

enum counter { HEARTBEAT_TIMEOUTS, BYPASSED, RING_FULL, DIVERTED, REPORTED, UPLOADED, COUNTERS };

struct {
    uint_of(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    uint_of(max_entries, COUNTERS);
    __u32 *key;
    __u64 *value;
} counters SEC(".maps");

// The report of a packet from the mobile.
#define CAPTURE 256
struct report {
    __u64 at; // CLOCK_MONOTONIC
    __u32 len;
    __u16 captured;
    __u16 vlan_tci;
    __u16 vlan_proto; // in network order; 0 without a tag outside the packet
    __u8 diverted;
    __u8 left_to_card; // of a diverted one: its checksum is still to be made
    __u32 has_gap; // packets of this flow passed unreported before it
    __u8 bytes[CAPTURE];
};

struct {
    uint_of(type, BPF_MAP_TYPE_RINGBUF);
    uint_of(max_entries, 4194304);
} reports SEC(".maps");

#define RING_NO_WAKEUP 1
#define RING_FORCE_WAKEUP 2

INLINE void add(__u32 which, __u64 number)
{
    __u64 *value = map_lookup(&counters, &which);
    if (value)
        *value += number;
}

INLINE void count(__u32 which)
{
    add(which, 1);
}

// Whether the daemon should see this packet towards a mobile: data, or the begin or end of a
// connection. Notes its flow, so that the mobile's packets are known too.
INLINE int is_wanted(struct __sk_buff *skb)
{
    struct segment segment = {};
    if (skb->mark == MARK || !parse(skb, &segment))
        return 0;
    if (segment.payload_len == 0 && !(segment.flags & (SYN | FIN | RST)))
        return 0;
    __u64 packets = skb->gso_segs ? skb->gso_segs : 1;
    struct flow sent = { .packets = packets, .bytes = segment.payload_len };
    struct flow *flow = map_lookup(&flows, &segment.key);
    // Asked once, and not together with anything else: without CAP_PERFMON the verifier follows
    // mispredicted branches too, and must not find one on which this is a null pointer after all.
    if (!flow) {
        map_update(&flows, &segment.key, &sent, BPF_ANY);
        return 1;
    }
    asm volatile("");
    if (flow->state & IGNORED)
        return 0;
    if (segment.flags & SYN) {
        // The highest ACK stays: somebody else may have sent this SYN.
        flow->state |= SYN_SEEN;
        flow->packets = sent.packets;
        flow->bytes = sent.bytes;
        flow->unseen = 0;
    } else {
        __sync_fetch_and_add(&flow->packets, sent.packets);
        __sync_fetch_and_add(&flow->bytes, sent.bytes);
    }
    return 1;
}

// Attached to the packet socket that collects copies: bytes to keep, 0 for none.
SEC("socket") int airmend_copy(struct __sk_buff *skb)
{
    return skb->pkt_type == PACKET_OUTGOING && is_wanted(skb) ? 0x7fffffff : 0;
}

// Attached to the packet socket that collects departures of repairs: the headers are enough.
SEC("socket") int airmend_departed(struct __sk_buff *skb)
{
    return skb->pkt_type == PACKET_OUTGOING && skb->mark == MARK ? CAPTURE : 0;
}

struct host {
    __u64 address[2]; // as in a flow key
};

// The hosts that were heard on the air, and when the daemon was last told.
struct {
    uint_of(type, BPF_MAP_TYPE_LRU_HASH);
    uint_of(max_entries, 8192);
    struct host *key;
    __u64 *value;
} hosts SEC(".maps");

#define HEARD_INTERVAL_NS 100000000

// The sender of a packet from the air; 0 if the packet shows none.
INLINE int sender(struct __sk_buff *skb, struct host *host)
{
    __u64 header = network(skb);
    __u32 at = header >> 16;
    __u32 address;
    switch ((__u16)header) {
    case ETH_IP:
    case ETH_ARP:
        if (load_bytes(skb, at + ((__u16)header == ETH_IP ? 12 : 14), &address, sizeof(address)))
            return 0;
        host->address[0] = 0;
        host->address[1] = mapped(address);
        return address != 0;
    case ETH_IPV6:
        return !load_bytes(skb, at + 8, host, sizeof(*host));
    }
    return 0;
}

// Attached to the packet socket that learns which hosts are here: the headers of a packet of each
// host, ten times a second at most.
SEC("socket") int airmend_heard(struct __sk_buff *skb)
{
    struct host host = {};
    if (skb->pkt_type == PACKET_OUTGOING || !sender(skb, &host))
        return 0;
    __u64 now = ktime_ns();
    __u64 *told = map_lookup(&hosts, &host);
    if (told && now - *told < HEARD_INTERVAL_NS)
        return 0;
    map_update(&hosts, &host, &now, BPF_ANY);
    return CAPTURE;
}

INLINE int is_alive(void)
{
    __u32 last = 0, late = 1;
    __u64 *beat = map_lookup(&heartbeat, &last);
    __u64 *late_beat = map_lookup(&heartbeat, &late);
    if (!beat || !late_beat)
        return 0;
    __u64 at = *beat;
    // A heartbeat from the future (a container with a clock of its own) has timed out too, except
    // for the small difference between clocks.
    if (ktime_ns() - at + HEARTBEAT_TIMEOUT_NS < 2 * HEARTBEAT_TIMEOUT_NS)
        return 1;
    if (*late_beat != at) {
        *late_beat = at;
        count(HEARTBEAT_TIMEOUTS);
    }
    count(BYPASSED);
    return 0;
}

// Whether the checksum of a packet that goes no further is left to a card. No helper says so, but
// this one changes every other checksum by what has changed in the packet, and leaves this one.
INLINE int is_left_to_card(struct __sk_buff *skb, const struct segment *segment)
{
    __u32 at = segment->options - sizeof(struct tcp_header) + 16;
    __u16 before, after;
    if (load_bytes(skb, at, &before, sizeof(before)) || replace_checksum(skb, at, 0, 1, 4) ||
        load_bytes(skb, at, &after, sizeof(after)))
        return 0;
    return before == after;
}

// Reports a packet of a flow to the daemon; 0 if that fails.
INLINE int report_packet(struct __sk_buff *skb, struct flow *flow, const struct segment *segment,
                         int diverted)
{
    __u32 len = skb->len;
    if (diverted && len > CAPTURE) {
        flow->unseen += 1;
        return 0;
    }
    struct report *report = ringbuf_reserve(&reports, sizeof(*report), 0);
    if (!report) {
        flow->unseen += 1;
        count(RING_FULL);
        return 0;
    }
    report->at = ktime_ns();
    report->len = len;
    report->vlan_tci = skb->vlan_present ? skb->vlan_tci : 0;
    report->vlan_proto = skb->vlan_present ? skb->vlan_proto : 0;
    report->diverted = diverted;
    report->has_gap = flow->unseen != 0;
    // Before Linux 6.8 the verifier learns no lower bound from a comparison with zero.
    __u64 last = (len < CAPTURE ? len : CAPTURE) - 1;
    asm volatile("" : "+r"(last));
    __u64 captured = (last & (CAPTURE - 1)) + 1;
    if (load_bytes(skb, 0, report->bytes, captured)) {
        flow->unseen += 1;
        ringbuf_discard(report, 0);
        return 0;
    }
    flow->unseen = 0;
    report->captured = captured;
    report->left_to_card = diverted && is_left_to_card(skb, segment);
    // A packet that has passed can wait for the daemon's next turn.
    ringbuf_submit(report, diverted ? RING_FORCE_WAKEUP : RING_NO_WAKEUP);
    return 1;
}

#define TIMESTAMPS_LEN 12

// Whether its options begin with two NOPs and timestamps, as every Linux writes them.
INLINE int begins_with_timestamps(struct __sk_buff *skb, const struct segment *segment)
{
    __u32 begin;
    if (segment->options_len < TIMESTAMPS_LEN ||
        load_bytes(skb, segment->options, &begin, sizeof(begin)))
        return 0;
    return begin == swap32(0x0101080a);
}

// Whether its options are none, or timestamps alone: no SACK.
INLINE int has_plain_options(struct __sk_buff *skb, const struct segment *segment)
{
    return segment->options_len == 0 ||
           (segment->options_len == TIMESTAMPS_LEN && begins_with_timestamps(skb, segment));
}

// Attached where packets from the mobile come in.
SEC("classifier") int airmend_ingress(struct __sk_buff *skb)
{
    if (skb->mark == MARK) {
        // The daemon has reinjected it.
        skb->mark = 0;
        return PASS;
    }
    struct segment segment = {};
    if (!parse(skb, &segment) || !(segment.flags & (ACK | SYN | RST)))
        return PASS;
    add(UPLOADED, segment.payload_len);
    const struct flow_key *from_mobile = &segment.key;
    struct flow_key key = {
        .wired = { from_mobile->air[0], from_mobile->air[1] },
        .air = { from_mobile->wired[0], from_mobile->wired[1] },
        .ports = (__u32)(from_mobile->ports << 16 | from_mobile->ports >> 16),
    };
    struct flow *flow = map_lookup(&flows, &key);
    if (!flow || flow->state & IGNORED)
        return PASS;
    if (!is_alive()) {
        flow->unseen += 1;
        return PASS;
    }
    if (segment.flags & SYN)
        flow->state |= SYN_SEEN;
    int is_known = (flow->state & (ACKED_KNOWN | SYN_SEEN)) == ACKED_KNOWN;
    __s32 ahead = (__u32)segment.ack - (__u32)flow->acked;
    int advances = is_known && ahead > 0;
    if (segment.flags & ACK && !(segment.flags & RST)) {
        if (!(flow->state & ACKED_KNOWN) || ahead > 0 || ahead < -OVERTAKEN)
            flow->acked = segment.ack;
        flow->state |= ACKED_KNOWN;
        if (!(segment.flags & SYN))
            flow->state &= ~(__u64)SYN_SEEN;
    }
    int is_pure = segment.payload_len == 0 && !(segment.flags & (SYN | FIN | RST));
    int is_plain = has_plain_options(skb, &segment);
    if (is_pure && !(advances && is_plain && !(segment.flags & URG)) && !OBSERVE) {
        if (!report_packet(skb, flow, &segment, 1))
            return PASS;
        count(DIVERTED);
        return DROP;
    }
    int connects = segment.flags & (SYN | RST);
    if (!is_pure && !connects && !is_plain && !OBSERVE) {
        // Data or a FIN, which may report holes too, and may be too long for a report.
        count(DIVERTED);
        return redirect(REINJECTION, 0);
    }
    int is_news = advances || !is_known || segment.flags & (SYN | FIN | RST);
    if (!is_news && !OBSERVE)
        return PASS;
    // No agent would suppress or change this packet.
    if (report_packet(skb, flow, &segment, 0))
        count(REPORTED);
    return PASS;
}

struct restoration_key {
    struct flow_key flow;
    __u64 start;
};

// Data of the sender that was lost on the air and repaired, and its timestamp.
struct restoration {
    __u64 end;
    __u64 timestamp;
    __u64 until; // CLOCK_MONOTONIC
};

struct {
    uint_of(type, BPF_MAP_TYPE_LRU_HASH);
    uint_of(max_entries, 16384);
    struct restoration_key *key;
    struct restoration *value;
} restorations SEC(".maps");

// Writes another timestamp into a packet.
INLINE void replace_timestamp(struct __sk_buff *skb, const struct segment *segment, __u32 before,
                              __u32 after)
{
    if (!store_bytes(skb, segment->options + 4, &after, sizeof(after), 0))
        replace_checksum(skb, segment->options - sizeof(struct tcp_header) + 16, before, after,
                         sizeof(after));
}

// Attached where packets towards the mobile leave: what the sender resends of repaired data gets
// the timestamp of the original, once, if its own is newer.
SEC("classifier") int airmend_egress(struct __sk_buff *skb)
{
    __u32 restores_until = 2;
    __u64 *until = map_lookup(&heartbeat, &restores_until);
    __u64 now = ktime_ns();
    struct segment segment = {};
    if (!until || *until < now || skb->mark == MARK || !parse(skb, &segment))
        return PASS;
    struct restoration_key key = { .flow = segment.key, .start = segment.seq };
    struct restoration *original = map_lookup(&restorations, &key);
    if (!original || original->until < now || segment.payload_len == 0)
        return PASS;
    asm volatile("");
    __u32 before, after = swap32((__u32)original->timestamp);
    __s32 beyond = (__u32)(segment.seq + segment.payload_len) - (__u32)original->end;
    if (beyond > 0 || !begins_with_timestamps(skb, &segment) ||
        load_bytes(skb, segment.options + 4, &before, sizeof(before)))
        return PASS;
    __s32 newer = swap32(before) - swap32(after);
    if (newer <= 0)
        return PASS;
    map_delete(&restorations, &key);
    replace_timestamp(skb, &segment, before, after);
    return PASS;
}

// Attached to the reinjection device, through which the daemon returns ACKs.
SEC("classifier") int airmend_inject(struct __sk_buff *skb)
{
    skb->mark = MARK;
    return redirect(AIR, BPF_F_INGRESS);
}

SEC("license") const char LICENSE[] = "Dual MIT/GPL";
