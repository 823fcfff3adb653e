# One bulk transfer over TCP with SACK for 1,000 s: 2 Mbit/s and 10 ms each way, a queue of 50 packets, a window of 20
# packets of 1000 octets. ns-2's packets carry 40 octets of headers, as those of scenarios/tcp-geo.toml do.
set ns [new Simulator]
$ns use-scheduler Heap
set source_node [$ns node]
set sink_node [$ns node]
$ns duplex-link $source_node $sink_node 2Mb 10ms DropTail
$ns queue-limit $source_node $sink_node 50
$ns queue-limit $sink_node $source_node 50

set source [new Agent/TCP/Sack1]
set sink [new Agent/TCPSink/Sack1]
$source set packetSize_ 1000
$source set window_ 20
$ns attach-agent $source_node $source
$ns attach-agent $sink_node $sink
$ns connect $source $sink
set ftp [new Application/FTP]
$ftp attach-agent $source
$ns at 0.0 "$ftp start"
$ns at 1000.0 {puts "[$sink set maxSackBlocks_] [$source set ndatapack_] [$source set ack_]"; exit 0}
$ns run
