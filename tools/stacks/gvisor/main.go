// The TCP of gVisor as the sender of a transfer: tools/stacks-bench runs it beside the kernel's.
//
//	gvisor INTERFACE ADDRESS PORT SECONDS CONGESTION-CONTROL
//
// It opens the TUN device INTERFACE, waits at ADDRESS:PORT, and sends to whoever connects.
package main

import (
	"log"
	"net/netip"
	"os"
	"strconv"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/link/tun"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	nic = 1
	mtu = 1500
	// Room for several bandwidth-delay products of what is measured.
	sendBuffer = 8 << 20
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 6 {
		log.Fatal("gvisor: usage: gvisor INTERFACE ADDRESS PORT SECONDS CONGESTION-CONTROL")
	}
	address := tcpip.AddrFrom4(netip.MustParseAddr(os.Args[2]).As4())
	port := number(os.Args[3])
	seconds := number(os.Args[4])
	hosts := newStack(os.Args[1], address, os.Args[5])
	at := tcpip.FullAddress{NIC: nic, Addr: address, Port: uint16(port)}
	listener, err := gonet.ListenTCP(hosts, at, ipv4.ProtocolNumber)
	check(err)
	connection, err := listener.Accept()
	check(err)
	block := make([]byte, 1<<16)
	for end := time.Now().Add(time.Duration(seconds) * time.Second); time.Now().Before(end); {
		if _, err := connection.Write(block); err != nil {
			return
		}
	}
	connection.Close()
	// What is in the buffer still leaves.
	time.Sleep(time.Minute)
}

// newStack has one address at a TUN device; SACK and timestamps as its users have them.
func newStack(name string, address tcpip.Address, congestion string) *stack.Stack {
	fd, err := tun.Open(name)
	check(err)
	link, err := fdbased.New(&fdbased.Options{FDs: []int{fd}, MTU: mtu})
	check(err)
	hosts := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack := tcpip.TCPSACKEnabled(true)
	control := tcpip.CongestionControlOption(congestion)
	buffers := tcpip.TCPSendBufferSizeRangeOption{
		Min: tcp.MinBufferSize, Default: sendBuffer, Max: sendBuffer,
	}
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &control, &buffers} {
		refused(hosts.SetTransportProtocolOption(tcp.ProtocolNumber, option))
	}
	refused(hosts.CreateNIC(nic, link))
	own := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: address.WithPrefix(),
	}
	refused(hosts.AddProtocolAddress(nic, own, stack.AddressProperties{}))
	hosts.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return hosts
}

func number(text string) int {
	value, err := strconv.ParseUint(text, 10, 16)
	check(err)
	return int(value)
}

func check(err error) {
	if err != nil {
		log.Fatalf("gvisor: %v", err)
	}
}

func refused(err tcpip.Error) {
	if err != nil {
		log.Fatalf("gvisor: %v", err)
	}
}
