# A PGM source of constant bit rate and ten receivers, five of them behind a satellite, for 600 s: the tree, the timers and
# the losses of vectors/ns2/pgm.csv. Arguments: the packet error rate of the satellite's link towards the receivers.
# Prints ODATA that left, and RDATA.
set per [lindex $argv 0]
set ns [new Simulator -multicast on]
$ns node-config -PGM ON
foreach name {S1 G0 G1 G2} { set node($name) [$ns node] }
for {set k 1} {$k <= 10} {incr k} { set node(R$k) [$ns node] }

proc connect {one other rate delay} {
    global ns node
    $ns duplex-link $node($one) $node($other) $rate $delay DropTail
    $ns queue-limit $node($one) $node($other) 50
    $ns queue-limit $node($other) $node($one) 50
}
connect S1 G0 100Mb 1ms
connect G0 G1 10Mb 10ms
connect G1 G2 2Mb 250ms
for {set k 1} {$k <= 5} {incr k} { connect G1 R$k 100Mb 1ms }
for {set k 6} {$k <= 10} {incr k} { connect G2 R$k 100Mb 1ms }

if {$per > 0} {
    set losses [new ErrorModel]
    $losses unit pkt
    $losses set rate_ $per
    $losses ranvar [new RandomVariable/Uniform]
    $losses drop-target [$ns set nullAgent_]
    $ns link-lossmodel $losses $node(G1) $node(G2)
}
$ns mrtproto DM {}

Agent/PGM set nak_retrans_ival_ 1000ms
Agent/PGM set nak_rpt_ival_ 5000ms
Agent/PGM/Receiver set nak_bo_ivl_ 50ms
Agent/PGM/Receiver set nak_rpt_ivl_ 1000ms
Agent/PGM/Receiver set nak_rdata_ivl_ 3000ms
foreach name [array names node] {
    set agent [$node($name) get-pgm]
    $agent set nak_retrans_ival_ 1000ms
    $agent set nak_rpt_ival_ 5000ms
}

set group [Node allocaddr]
set source [new Agent/PGM/Sender]
$ns attach-agent $node(S1) $source
$source set dst_addr_ $group
$source set dst_port_ 0
set cbr [new Application/Traffic/CBR]
$cbr attach-agent $source
$cbr set rate_ 600Kb
$cbr set packetSize_ 1000
$cbr set random_ 0
for {set k 1} {$k <= 10} {incr k} {
    set receiver [new Agent/PGM/Receiver]
    $ns attach-agent $node(R$k) $receiver
    $ns at 0.01 "$node(R$k) join-group $receiver $group"
}
$ns at 0.5 "$source start-SPM"
$ns at 1.0 "$cbr start"
$ns at 601.0 "$cbr stop; $source stop-SPM"
$ns at 631.0 {$source print-stats; exit 0}
$ns run
