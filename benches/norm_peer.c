/*
 * One file over NORM (RFC 5740) by NRL's libnorm, as the benchmarks need it:
 *
 *   norm_peer send GROUP PORT INTERFACE RATE FILE RECEIVERS
 *   norm_peer receive GROUP PORT INTERFACE NODE DIRECTORY NAME
 *
 * RATE is bit/s, at a fixed rate. Receivers are the nodes 2, 3 ..; the sender is node 1 and ends when all of them have
 * acknowledged the file, or when it has asked for that in vain. A receiver prints a line when the file has its name, and
 * then answers the sender until it is terminated.
 *
 * Sizes of segments and blocks are those of the library's own examples; backoff, group size, robustness, NACKs to the
 * group and the first round trip of 0.5 s are the library's defaults. Buffers hold a file of the benchmarks, so they
 * limit nothing. The library's header is C++ in two places: cc -x c++ norm_peer.c -lnorm.
 */

#include <normApi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 1400, BLOCK = 64, PARITY = 16, BUFFER = 64 << 20, SOCKET_BUFFER = 4 << 20, ASK_AGAIN = 3 };

static int fail(const char* what) {
    fprintf(stderr, "norm_peer: %s\n", what);
    return 1;
}

static int send_file(NormInstanceHandle instance, NormSessionHandle session, double rate, const char* file, int receivers) {
    NormSetTxRate(session, rate);
    if (!NormStartSender(session, NormGetRandomSessionId(), BUFFER, SEGMENT, BLOCK, PARITY)) return fail("cannot send");
    NormSetTxSocketBuffer(session, SOCKET_BUFFER);
    for (int node = 2; node < 2 + receivers; node++) NormAddAckingNode(session, node);
    const char* slash = strrchr(file, '/');
    const char* name = slash ? slash + 1 : file;
    NormObjectHandle object = NormFileEnqueue(session, file, name, strlen(name));
    if (object == NORM_OBJECT_INVALID) return fail("cannot read the file");
    NormSetWatermark(session, object, true);
    NormEvent event;
    int again = ASK_AGAIN;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type != NORM_TX_WATERMARK_COMPLETED) continue;
        if (NormGetAckingStatus(session, NORM_NODE_ANY) == NORM_ACK_SUCCESS) {
            printf("acknowledged\n");
            return 0;
        }
        if (again-- == 0) return fail("not all have acknowledged");
        NormResetWatermark(session);
    }
    return fail("no more events");
}

static int receive_file(NormInstanceHandle instance, NormSessionHandle session, const char* into, const char* name) {
    if (!NormSetCacheDirectory(instance, into)) return fail("cannot write there");
    if (!NormStartReceiver(session, BUFFER)) return fail("cannot receive");
    NormSetRxSocketBuffer(session, SOCKET_BUFFER);
    printf("listening\n");
    fflush(stdout);
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type == NORM_RX_OBJECT_ABORTED) return fail("the file was given up");
        if (event.type != NORM_RX_OBJECT_COMPLETED) continue;
        char from[4096], to[4096];
        if (!NormFileGetName(event.object, from, sizeof from)) return fail("a file without a name");
        if (snprintf(to, sizeof to, "%s/%s", into, name) >= (int)sizeof to) return fail("too long a name");
        if (rename(from, to)) return fail("cannot name the file");
        printf("complete\n");
        fflush(stdout);
    }
    return fail("no more events");
}

int main(int count, char** words) {
    if (count != 8) return fail("see the top of norm_peer.c");
    bool sending = strcmp(words[1], "send") == 0;
    NormInstanceHandle instance = NormCreateInstance(false);
    NormNodeId node = sending ? 1 : atoi(words[5]);
    NormSessionHandle session = NormCreateSession(instance, words[2], atoi(words[3]), node);
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, words[4]);
    NormSetRxPortReuse(session, true);  // others of this host may listen, too
    int code = sending ? send_file(instance, session, atof(words[5]), words[6], atoi(words[7]))
                       : receive_file(instance, session, words[6], words[7]);
    NormDestroySession(session);
    NormDestroyInstance(instance);
    return code;
}
