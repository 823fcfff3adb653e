/* OpenPGM as a program, for tests.
 *
 *   openpgm_peer send CARRIER GROUP PORT CC COUNT OCTETS_PER_SECOND   sends messages 0 to COUNT - 1, and stays
 *   openpgm_peer receive CARRIER GROUP PORT CC                        says what each message is: its length and a sum
 *
 * CARRIER is "udp" or "raw"; CC is "cc" with PGMCC and "-" without. Over raw IP, PORT is PGM's, and SPMs, NAKs, NCFs
 * and repairs bear the router alert.
 *
 * Message n has 200 + 997 n mod 1200 octets: n, its low octet last, and then 31 n + 7 i for octet i.
 * Both use the loopback interface, or that with the address in OPENPGM_INTERFACE, and over UDP one port. With
 * OPENPGM_CLOSE set, who sends closes the session two seconds after the last message instead of staying. pgm_send crashes in Debian's build where a header is not of the
 * length that it expects, so pgm_send_skbv is used.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <netinet/in.h>
#include <pgm/pgm.h>

enum { MTU = 1500, SQNS = 8192, HEADER = 24, CC_HEADER = 44, BUFFER = 65536 };

static int fail(const char* what, pgm_error_t* error) {
    fprintf(stderr, "peer: %s: %s\n", what, error ? error->message : "no reason given");
    return 1;
}

static uint16_t length(uint32_t n) { return 200 + 997u * n % 1200; }

static void fill(uint8_t* octets, uint32_t n) {
    for (uint32_t i = 0; i < length(n); i++) octets[i] = i < 4 ? n >> (24 - 8 * i) : 31 * n + 7 * i;
}

static void set(pgm_sock_t* sock, int option, int value) {
    if (!pgm_setsockopt(sock, IPPROTO_PGM, option, &value, sizeof value)) fprintf(stderr, "option %d\n", option);
}

static int set_up(pgm_sock_t** out, const char* group, int port, int is_raw, int is_controlled, int is_sender, int rate) {
    struct pgm_addrinfo_t* address = NULL;
    pgm_error_t* error = NULL;
    pgm_sock_t* sock = NULL;
    char network[256];
    const char* own = getenv("OPENPGM_INTERFACE");
    snprintf(network, sizeof network, "%s;%s", own ? own : "127.0.0.1", group);
    if (!pgm_getaddrinfo(network, NULL, &address, &error)) return fail("address", error);
    int protocol = is_raw ? IPPROTO_PGM : IPPROTO_UDP;
    if (!pgm_socket(&sock, AF_INET, SOCK_SEQPACKET, protocol, &error)) return fail("socket", error);
    /* Before it is bound: only then others may use the port, too. */
    set(sock, PGM_MULTICAST_LOOP, 1);
    if (!is_raw) {
        set(sock, PGM_UDP_ENCAP_UCAST_PORT, port);
        set(sock, PGM_UDP_ENCAP_MCAST_PORT, port);
    }
    set(sock, PGM_IP_ROUTER_ALERT, is_raw);
    set(sock, PGM_MTU, MTU);
    if (is_sender) {
        const int beats[] = {pgm_msecs(20), pgm_msecs(50), pgm_msecs(100), pgm_msecs(200), pgm_msecs(500)};
        set(sock, PGM_SEND_ONLY, 1);
        set(sock, PGM_AMBIENT_SPM, pgm_msecs(50));
        if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_HEARTBEAT_SPM, beats, sizeof beats)) return fail("heartbeat", NULL);
        set(sock, PGM_TXW_SQNS, SQNS);
        set(sock, PGM_TXW_MAX_RTE, rate);
    } else {
        set(sock, PGM_RECV_ONLY, 1);
        set(sock, PGM_PASSIVE, 0);
        set(sock, PGM_RXW_SQNS, SQNS);
        set(sock, PGM_PEER_EXPIRY, pgm_secs(300));
        set(sock, PGM_SPMR_EXPIRY, pgm_msecs(250));
        set(sock, PGM_NAK_BO_IVL, pgm_msecs(20));
        set(sock, PGM_NAK_RPT_IVL, pgm_msecs(100));
        set(sock, PGM_NAK_RDATA_IVL, pgm_msecs(200));
        set(sock, PGM_NAK_DATA_RETRIES, 50);
        set(sock, PGM_NAK_NCF_RETRIES, 50);
    }
    struct pgm_pgmccinfo_t cc = {.ack_bo_ivl = pgm_msecs(50), .ack_c = 75, .ack_c_p = 500};
    if (is_controlled && !pgm_setsockopt(sock, IPPROTO_PGM, PGM_USE_PGMCC, &cc, sizeof cc)) return fail("PGMCC", NULL);
    struct pgm_sockaddr_t name = {.sa_port = is_raw ? port : 7500};
    if (!pgm_gsi_create_from_hostname(&name.sa_addr.gsi, &error)) return fail("gsi", error);
    struct pgm_interface_req_t interface = {
        .ir_interface = address->ai_recv_addrs[0].gsr_interface,
        .ir_address = address->ai_send_addrs[0].gsr_addr,
    };
    struct pgm_interface_req_t* i = &interface;
    if (!pgm_bind3(sock, &name, sizeof name, i, sizeof *i, i, sizeof *i, &error)) return fail("bind", error);
    for (unsigned n = 0; n < address->ai_recv_addrs_len; n++)
        if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_JOIN_GROUP, &address->ai_recv_addrs[n], sizeof(struct pgm_group_source_req)))
            return fail("join", NULL);
    if (!pgm_setsockopt(sock, IPPROTO_PGM, PGM_SEND_GROUP, &address->ai_send_addrs[0], sizeof(struct pgm_group_source_req)))
        return fail("send group", NULL);
    set(sock, PGM_MULTICAST_HOPS, 1);
    set(sock, PGM_NOBLOCK, 1);
    if (!pgm_connect(sock, &error)) return fail("connect", error);
    *out = sock;
    return 0;
}

/* Serves what comes to the source: requests for repair, timers. */
static void serve(pgm_sock_t* sock) {
    static char buffer[BUFFER];
    size_t len;
    pgm_error_t* error = NULL;
    for (int n = 0; n < 64; n++) {
        int status = pgm_recv(sock, buffer, sizeof buffer, MSG_DONTWAIT, &len, &error);
        if (error) pgm_error_free(error), error = NULL;
        if (status != PGM_IO_STATUS_NORMAL) return;
    }
}

static int send_all(pgm_sock_t* sock, uint32_t count, int header) {
    /* Until whoever listens knows where it begins. */
    for (int n = 0; n < 1000; n++) serve(sock), usleep(500);
    struct pgm_sk_buff_t* skb = NULL;
    for (uint32_t n = 0; n < count;) {
        if (!skb) {
            skb = pgm_alloc_skb(MTU);
            pgm_skb_reserve(skb, header);
            fill(pgm_skb_put(skb, length(n)), n);
        }
        size_t sent;
        int status = pgm_send_skbv(sock, &skb, 1, true, &sent);
        if (status == PGM_IO_STATUS_NORMAL) {
            skb = NULL;
            n++;
        } else if (status == PGM_IO_STATUS_ERROR) {
            return fail("send", NULL);
        } else {
            usleep(200);
        }
        serve(sock);
    }
    printf("sent\n");
    fflush(stdout);
    for (int n = 0; n < 4000 || !getenv("OPENPGM_CLOSE"); n++) serve(sock), usleep(500);
    return pgm_close(sock, true) ? 0 : fail("close", NULL);
}

static void receive_all(pgm_sock_t* sock) {
    static uint8_t buffer[BUFFER];
    printf("listening\n");
    fflush(stdout);
    for (;;) {
        size_t len;
        pgm_error_t* error = NULL;
        int status = pgm_recv(sock, buffer, sizeof buffer, MSG_DONTWAIT, &len, &error);
        if (status == PGM_IO_STATUS_NORMAL) {
            uint32_t sum = 0;
            for (size_t i = 0; i < len; i++) sum = sum * 31 + buffer[i];
            printf("%zu %u\n", len, sum);
        } else if (status == PGM_IO_STATUS_RESET) {
            printf("reset\n");
        } else {
            fflush(stdout);
            usleep(200);
        }
        if (error) pgm_error_free(error);
    }
}

int main(int count, char** words) {
    pgm_error_t* error = NULL;
    if (count < 6) return fail("see the top of peer.c", NULL);
    /* Whoever waits for its lines does not wait for ever. */
    alarm(90);
    if (!pgm_init(&error)) return fail("init", error);
    int is_sender = strcmp(words[1], "send") == 0, is_raw = strcmp(words[2], "raw") == 0;
    int is_controlled = strcmp(words[5], "cc") == 0, rate = is_sender ? atoi(words[7]) : 0;
    pgm_sock_t* sock;
    if (set_up(&sock, words[3], atoi(words[4]), is_raw, is_controlled, is_sender, rate)) return 1;
    if (is_sender) return send_all(sock, atoi(words[6]), is_controlled ? CC_HEADER : HEADER);
    receive_all(sock);
    return 0;
}
