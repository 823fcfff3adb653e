/* OpenPGM as a program, for tests.
 *
 *   openpgm_peer send GROUP PORT COUNT OCTETS_PER_SECOND   sends messages 0 to COUNT - 1, and stays
 *   openpgm_peer receive GROUP PORT                        says "N" and what each message is: its length and a sum
 *
 * Message n has 200 + 997 n mod 1200 octets: n, its low octet last, and then 31 n + 7 i for octet i.
 * Both use the loopback interface and one UDP port. pgm_send crashes in Debian's build where a header is not of the
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

enum { MTU = 1500, SQNS = 8192, HEADER = 24, BUFFER = 65536 };

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

static int set_up(pgm_sock_t** out, const char* group, int port, int is_sender, int rate) {
    struct pgm_addrinfo_t* address = NULL;
    pgm_error_t* error = NULL;
    pgm_sock_t* sock = NULL;
    char network[256];
    snprintf(network, sizeof network, "127.0.0.1;%s", group);
    if (!pgm_getaddrinfo(network, NULL, &address, &error)) return fail("address", error);
    if (!pgm_socket(&sock, AF_INET, SOCK_SEQPACKET, IPPROTO_UDP, &error)) return fail("socket", error);
    /* Before it is bound: only then others may use the port, too. */
    set(sock, PGM_MULTICAST_LOOP, 1);
    set(sock, PGM_UDP_ENCAP_UCAST_PORT, port);
    set(sock, PGM_UDP_ENCAP_MCAST_PORT, port);
    set(sock, PGM_IP_ROUTER_ALERT, 0);
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
    struct pgm_sockaddr_t name = {.sa_port = 7500};
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

static int send_all(pgm_sock_t* sock, uint32_t count) {
    /* Until whoever listens knows where it begins. */
    for (int n = 0; n < 1000; n++) serve(sock), usleep(500);
    struct pgm_sk_buff_t* skb = NULL;
    for (uint32_t n = 0; n < count;) {
        if (!skb) {
            skb = pgm_alloc_skb(MTU);
            pgm_skb_reserve(skb, HEADER);
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
    for (;;) serve(sock), usleep(500);
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
    if (count < 4) return fail("see the top of peer.c", NULL);
    if (!pgm_init(&error)) return fail("init", error);
    int is_sender = strcmp(words[1], "send") == 0;
    pgm_sock_t* sock;
    if (set_up(&sock, words[2], atoi(words[3]), is_sender, is_sender ? atoi(words[5]) : 0)) return 1;
    if (is_sender) return send_all(sock, atoi(words[4]));
    receive_all(sock);
    return 0;
}
