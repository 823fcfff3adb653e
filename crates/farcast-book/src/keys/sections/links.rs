//! `[link]`, and stages that carry one direction.

use crate::keys::Section;

/// Tables in which stages that carry one direction may stand.
const ANYWHERE: &[&str] = &["link.forward", "link.return", "link.stages"];

pub(super) const SECTIONS: &[Section] = &[
    Section {
        title: "## `[link]` {#link}",
        intro: "Each direction passes its stages in the order in which they are listed, and then `link.forward` or `link.return`.",
        tables: &["link"],
        samples: &["pipe"],
        everywhere: true,
        keys: &[
            ("mtu", "the longest packet that hosts send, 68 B to 65535 B"),
            ("forward", "the last stage from the hub to the terminals, and what is lost behind it"),
            ("return", "the last stage from the terminals to the hub, and what is lost behind it"),
            ("stages", "further stages before these"),
        ],
    },
    Section {
        title: "### Which kind of stage {#kind}",
        intro: "`ppp`, `multilink` and `umts` carry both ways and are in `link.stages` only; they have no `direction`.",
        tables: ANYWHERE,
        samples: &["pipe"],
        everywhere: true,
        keys: &[
            ("name", "name for `--set` and in reports"),
            ("kind", "kind of the stage; the other keys follow from it"),
            ("direction", "direction: from the hub, or to it"),
        ],
    },
    Section {
        title: "### `kind = \"pipe\"`: rate, queue and delay {#pipe}",
        intro: "",
        tables: ANYWHERE,
        samples: &["pipe"],
        everywhere: true,
        keys: &[
            ("rate", "without one, sending takes no time"),
            ("delay", "one-way"),
            (
                "queue",
                "limit of the queue in octets; by default, with a rate, [one bandwidth-delay product](links.md#how-much-a-queue-holds)",
            ),
            ("queue_packets", "the same in packets"),
            (
                "jitter",
                "delays differ by up to so much, uniformly; with a deviation, the limit of normal jitter",
            ),
            ("jitter_deviation", "the standard deviation of normal jitter"),
            ("reorder", "jitter may change the order"),
            ("frame_overhead", "octets that the link adds to each packet, up to 65535 B"),
        ],
    },
    Section {
        title: "### Losses behind `link.forward` and `link.return` {#losses}",
        intro: "Of every kind but [BGAN forward](#bgan-forward), whose `per` is its own. A packet is lost if any of them loses it.",
        tables: &["link.forward", "link.return"],
        samples: &["losses", "other losses"],
        everywhere: true,
        keys: &[
            ("per", "the probability that a packet is lost, by each receiver on its own"),
            ("ber", "the probability that a bit is wrong"),
            ("ber_frame", "the frames that bit errors hit; without it, packets"),
            ("gilbert_elliott", "[losses in two states](#gilbert_elliott)"),
            ("error_vector", "packets of the channel that all receivers lose: `\"00010\"`"),
            (
                "error_vector_file",
                "a file with such a line for each receiver, the first again after the last",
            ),
            ("error_vector_repeats", "a vector begins anew at its end"),
            ("outages", "[times in which everything is lost](#outages)"),
            ("loses", "`\"data\"`: requests and announcements of the transfer always arrive"),
        ],
    },
    Section {
        title: "#### `gilbert_elliott` {#gilbert_elliott}",
        intro: "A table of `link.forward`, `link.return` or a group: a good and a bad state, changed with each frame (`p`, `r`) or after \
                times (`good`, `bad`).",
        tables: &["link.forward.gilbert_elliott", "link.return.gilbert_elliott"],
        samples: &["losses", "other losses"],
        everywhere: true,
        keys: &[
            ("p", "the probability that a frame turns good to bad; needed where there are no times"),
            ("r", "the probability that a frame turns bad to good; likewise"),
            ("good", "the mean time in the good state"),
            ("bad", "the mean time in the bad state"),
            ("loss_good", "the loss in the good state"),
            ("loss_bad", "the loss in the bad state"),
        ],
    },
    Section {
        title: "#### `outages` {#outages}",
        intro: "A table of `link.forward`, `link.return` or a group: by schedule (`start`), or at random (`between`).",
        tables: &["link.forward.outages", "link.return.outages"],
        samples: &["losses", "other losses"],
        everywhere: true,
        keys: &[
            ("start", "beginning of the first outage"),
            ("length", "length of an outage; of random ones, the mean"),
            ("period", "from the beginning of one to that of the next; without it there is one"),
            ("between", "of random ones, which have no `start`: the mean time between two, exponential"),
            (
                "fixed_length",
                "`true`: random ones all last `length`; `false`: exponential ones do so in the mean",
            ),
            ("common", "random outages hit all receivers at once"),
        ],
    },
    Section {
        title: "### `kind = \"hold\"`: outages in which packets wait {#hold}",
        intro: "",
        tables: ANYWHERE,
        samples: &["hold"],
        everywhere: false,
        keys: &[
            ("start", "beginning of the first outage; required"),
            ("length", "length of an outage"),
            ("period", "from the beginning of one to that of the next; without it there is one"),
        ],
    },
    Section {
        title: "### `kind = \"trace\"`: rates as mahimahi records them {#trace}",
        intro: "",
        tables: ANYWHERE,
        samples: &["trace"],
        everywhere: false,
        keys: &[
            (
                "trace",
                "the [file](formats.md#files-that-links-follow); a path in a scenario begins beside the scenario",
            ),
            (
                "queue",
                "limit of the queue in octets; by default [one bandwidth-delay product](links.md#how-much-a-queue-holds)",
            ),
            ("queue_packets", "the same in packets"),
            ("delay", "one-way, behind the delivery"),
            ("frame_overhead", "octets that the link adds to each packet, up to 65535 B"),
        ],
    },
    Section {
        title: "### `kind = \"timeline\"`: rate, delay and loss from a table {#timeline}",
        intro: "",
        tables: ANYWHERE,
        samples: &["timeline"],
        everywhere: false,
        keys: &[
            (
                "timeline",
                "the [file](formats.md#files-that-links-follow); a path in a scenario begins beside the scenario",
            ),
            ("period", "after this time the table begins again; else its last line holds for good"),
            (
                "queue",
                "limit of the queue in octets; by default [one bandwidth-delay product](links.md#how-much-a-queue-holds)",
            ),
            ("queue_packets", "the same in packets"),
            ("frame_overhead", "octets that the link adds to each packet, up to 65535 B"),
        ],
    },
    Section {
        title: "### `kind = \"bgan\"` forward: a shared bearer {#bgan-forward}",
        intro: "",
        tables: &["link.forward", "link.stages"],
        samples: &["bgan forward"],
        everywhere: false,
        keys: &[
            ("frame", "the length of a frame, which divides into its FEC blocks"),
            ("fec_blocks", "FEC blocks in a frame"),
            ("fec_block_octets", "octets that a block carries, PDU overheads included"),
            ("pdu_payloads", "octets of a packet's PDUs, used in turn"),
            ("pdu_overheads", "overheads of these PDUs"),
            ("packing", "packets begin a block of their own, or share blocks"),
            (
                "align_to_blocks",
                "a packet that finds the bearer idle waits for the next multiple of a block's time",
            ),
            (
                "queue",
                "octets that may wait for their first block; by default [one bandwidth-delay product](links.md#how-much-a-queue-holds)",
            ),
            ("queue_packets", "the same in packets"),
            (
                "propagation",
                "from the end of a packet's last block to its arrival: flight, coding and decoding",
            ),
            ("loss_unit", "unit that is lost as a whole"),
            ("per", "the probability that a receiver loses such a unit"),
            ("drop_rest_of_block", "a lost PDU takes the later ones of its block with it"),
        ],
    },
    Section {
        title: "### `kind = \"bgan\"` return: slots that are asked for {#bgan-return}",
        intro: "",
        tables: &["link.return", "link.stages"],
        samples: &["bgan return"],
        everywhere: false,
        keys: &[
            ("frame", "the length of a frame"),
            ("c_slots", "contention slots, which begin the frame"),
            ("c_slot", "the length of one"),
            ("r_slots", "reservation slots, which follow"),
            ("r_slot", "the length of one"),
            ("r_slot_octets", "octets of packets that one carries"),
            ("propagation", "one-way, between a terminal and the hub"),
            ("processing", "from the arrival of a request until the schedule that answers it leaves"),
            ("backoff_frames", "after a collision a terminal lets 0 to one less than so many frames go by"),
            (
                "backoff_doubling",
                "the window doubles with each further collision, so often at most; without it, it stays",
            ),
            ("request", "scope of a request: the whole queue, or a packet"),
            (
                "piggyback",
                "packets that enter before the last burst reserved for their terminal are requested in it",
            ),
            ("access", "access of requests to the hub: by contention, or always"),
            (
                "queue",
                "octets that a terminal may hold; by default [one bandwidth-delay product](links.md#how-much-a-queue-holds)",
            ),
            ("queue_packets", "the same in packets"),
            (
                "give_up_after",
                "after how many collisions a terminal drops what a request was for; without it never",
            ),
        ],
    },
];
