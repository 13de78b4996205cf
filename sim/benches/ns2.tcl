# One Reno transfer in ns-2, without errors and without traces, for `make bench-ns2`:
#
#     ns ns2.tcl plain|snoop95 PACKETS
#
# prints how many data packets were sent when all are acknowledged. Hosts, links and TCP are those
# of the transfer in `packet.rs`, which runs this script. ns-2's snoop is a link layer of its local
# networks, so there the last hop is a local network of two nodes; ns-2's basic MAC never collides.

lassign $argv agent packets
if {$argc != 2 || $agent ni {plain snoop95} || ![string is integer -strict $packets]} {
    puts stderr "usage: ns ns2.tcl plain|snoop95 PACKETS"
    exit 2
}

# An ns-2 packet carries every header that the program knows; these are the ones in use.
remove-all-packet-headers
add-packet-header IP TCP Flags LL Mac Snoop

set wired_rate 10Mb
set wired_delay 1ms
set air_rate 1.6Mb
set air_delay 5ms

set ns [new Simulator]
set fh [$ns node]
set bs [$ns node]
set mh [$ns node]
$ns duplex-link $fh $bs $wired_rate $wired_delay DropTail
if {$agent eq "plain"} {
    $ns duplex-link $bs $mh $air_rate $air_delay DropTail
} else {
    # ns-2 gives this variable no default and would warn.
    LanRouter set debug_ 0
    Mac set bandwidth_ $air_rate
    set lan [$ns make-lan $mh $air_rate $air_delay LL Queue/DropTail Mac Channel]
    $lan addNode $bs $air_rate $air_delay LL/LLSnoop Queue/DropTail Mac
}

# 64 KB of 1460 bytes, below ns-2's queues of 50 packets; every second segment is acknowledged.
set tcp [new Agent/TCP/Reno]
$tcp set packetSize_ 1460
$tcp set window_ 44
$tcp set windowInit_ 1
$tcp set tcpTick_ 0.5
$tcp set minrto_ 1
set sink [new Agent/TCPSink/DelAck]
$sink set interval_ 200ms
$ns attach-agent $fh $tcp
$ns attach-agent $mh $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp

# ns-2 calls this when all is acknowledged; number 0 was the SYN.
$tcp proc done {} {
    puts [expr {[$self set maxseq_] + [$self set nrexmitpack_]}]
    exit 0
}
$ns at 0 "$ftp produce $packets"
$ns at 3600 {
    puts stderr "ns2.tcl: the transfer was not complete after an hour of virtual time"
    exit 1
}
$ns run
