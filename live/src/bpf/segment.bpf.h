// TCP segments in packets as the kernel has them: behind VLAN tags, over IPv4 or IPv6.

#define INLINE static inline __attribute__((always_inline))

static long (*load_bytes)(const void *skb, __u32 offset, void *to, __u32 len) =
    (void *)BPF_FUNC_skb_load_bytes;

// Set by the daemon before it loads the programs.
volatile const __u32 LINK_HEADER = 14; // bytes before the IP header: 14, or 0 without Ethernet

// Everything that functions here hand to each other on the stack is of 64 bits. A process without
// CAP_PERFMON may not write a part of a stack slot whose value the verifier knows, and Linux 5.16
// to 6.5 take even 16 bits of an unknown number for such a value.
struct flow_key {
    __u64 wired[2]; // in network order; IPv4 addresses are mapped
    __u64 air[2];
    __u64 ports; // as in a header towards the mobile
};

// Between network order and the machine's.
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
INLINE __u16 swap16(__u16 value) { return value; }
INLINE __u32 swap32(__u32 value) { return value; }
#else
INLINE __u16 swap16(__u16 value) { return __builtin_bswap16(value); }
INLINE __u32 swap32(__u32 value) { return __builtin_bswap32(value); }
#endif

struct segment {
    struct flow_key key; // of a packet towards the mobile; airmend_ingress() turns it round
    __u64 options;       // offset of the TCP options
    __u64 options_len;
    __u64 payload_len;
    __u64 seq;
    __u64 ack;
    __u64 flags;
};

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define ACK 0x10
#define URG 0x20

#define ETH_IP 0x0800
#define ETH_ARP 0x0806
#define ETH_IPV6 0x86dd
#define ETH_VLAN 0x8100
#define ETH_QINQ 0x88a8
#define TCP 6

struct tcp_header {
    __u32 ports;
    __u32 seq, ack;
    __u8 offset, flags;
    __u16 window, checksum, urgent;
};

INLINE int parse_tcp(struct __sk_buff *skb, __u32 at, __u32 ip_payload, struct segment *segment)
{
    struct tcp_header tcp;
    if (load_bytes(skb, at, &tcp, sizeof(tcp)))
        return 0;
    __u32 header = (tcp.offset >> 4) * 4;
    if (header < sizeof(tcp) || header > ip_payload)
        return 0;
    segment->key.ports = tcp.ports;
    segment->options = at + sizeof(tcp);
    segment->options_len = header - sizeof(tcp);
    segment->payload_len = ip_payload - header;
    segment->seq = swap32(tcp.seq);
    segment->ack = swap32(tcp.ack);
    segment->flags = tcp.flags;
    return 1;
}

// The second half of ::ffff:a.b.c.d, of an address in network order.
INLINE __u64 mapped(__u32 address)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return 0xffffULL << 32 | address;
#else
    return (__u64)address << 32 | 0xffff0000;
#endif
}

// The length that an IP header states, where so many bytes are left of the packet; 0 if they are
// fewer, as no host takes the packet then. A super-packet's length may not fit its header, which
// states 0 then.
INLINE __u32 ip_length(struct __sk_buff *skb, __u32 stated, __u32 left)
{
    if (stated == 0)
        return skb->gso_segs ? left : 0;
    return stated <= left ? stated : 0;
}

INLINE int parse_ipv4(struct __sk_buff *skb, __u32 at, struct segment *segment)
{
    struct {
        __u8 version, tos;
        __u16 length, id, fragment;
        __u8 ttl, protocol;
        __u16 checksum;
        __u32 source, destination;
    } ip;
    if (load_bytes(skb, at, &ip, sizeof(ip)))
        return 0;
    __u32 header = (ip.version & 15) * 4;
    if (ip.version >> 4 != 4 || ip.protocol != TCP || (ip.fragment & swap16(0x3fff)) || header < 20)
        return 0;
    __u32 length = ip_length(skb, swap16(ip.length), skb->len - at);
    if (length < header)
        return 0;
    segment->key.wired[0] = segment->key.air[0] = 0;
    segment->key.wired[1] = mapped(ip.source);
    segment->key.air[1] = mapped(ip.destination);
    return parse_tcp(skb, at + header, length - header, segment);
}

INLINE int parse_ipv6(struct __sk_buff *skb, __u32 at, struct segment *segment)
{
    struct {
        __u8 version, label[3];
        __u16 length;
        __u8 next_header, hop_limit;
        __u64 source[2], destination[2];
    } ip;
    if (load_bytes(skb, at, &ip, sizeof(ip)))
        return 0;
    if ((ip.version & 0xf0) != 0x60 || ip.next_header != TCP)
        return 0;
    __u32 length = ip_length(skb, swap16(ip.length), skb->len - at - sizeof(ip));
    segment->key.wired[0] = ip.source[0];
    segment->key.wired[1] = ip.source[1];
    segment->key.air[0] = ip.destination[0];
    segment->key.air[1] = ip.destination[1];
    return parse_tcp(skb, at + sizeof(ip), length, segment);
}

// The protocol behind all VLAN tags, and above 16 bits the offset of its header; 0 if it has none.
INLINE __u64 network(struct __sk_buff *skb)
{
    __u64 at = LINK_HEADER;
    __u16 protocol = swap16(skb->protocol);
#pragma unroll
    for (int tags = 0; tags < 2; tags++) {
        if (protocol != ETH_VLAN && protocol != ETH_QINQ)
            break;
        // The agent reads two, of which one may stand outside the packet here.
        if (tags && skb->vlan_present)
            return 0;
        struct {
            __u16 tci, protocol;
        } tag;
        if (load_bytes(skb, at, &tag, sizeof(tag)))
            return 0;
        at += sizeof(tag);
        protocol = swap16(tag.protocol);
    }
    return at << 16 | protocol;
}

// Whether this is TCP that can be mended; IP fragments and extension headers are not.
INLINE int parse(struct __sk_buff *skb, struct segment *segment)
{
    __u64 header = network(skb);
    __u16 protocol = (__u16)header;
    if (protocol == ETH_IP)
        return parse_ipv4(skb, header >> 16, segment);
    if (protocol == ETH_IPV6)
        return parse_ipv6(skb, header >> 16, segment);
    return 0;
}
