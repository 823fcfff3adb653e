/*
 * A stream by NRL's libnorm, from or to a file:
 *
 *   norm_stream_peer send GROUP PORT INTERFACE RATE FILE RECEIVERS
 *   norm_stream_peer receive GROUP PORT INTERFACE NODE FILE
 *
 * The sender is node 1, writes messages of 1,000 octets, and ends when nodes 2, 3 .. have acknowledged all of them and
 * the stream has been closed. A receiver says "listening", and "complete" when the stream has been closed, or "broken"
 * if octets are missing. The library's header is C++ in two places: cc -x c++ norm_stream_peer.c -lnorm.
 */

#include <normApi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 1300, BLOCK = 32, PARITY = 8, BUFFER = 1 << 20, SOCKET_BUFFER = 4 << 20, MESSAGE = 1000, AGAIN = 50 };

static int fail(const char* what) {
    fprintf(stderr, "norm_stream_peer: %s\n", what);
    return 1;
}

/* Waits for an event of the sender's. */
static bool wait_for(NormInstanceHandle instance, NormEventType type) {
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true))
        if (event.type == type) return true;
    return false;
}

static int send_stream(NormInstanceHandle instance, NormSessionHandle session, double rate, const char* path,
                       int receivers) {
    NormSetTxRate(session, rate);
    NormSetGrttEstimate(session, 0.02);
    if (!NormStartSender(session, NormGetRandomSessionId(), 4 * BUFFER, SEGMENT, BLOCK, PARITY))
        return fail("cannot send");
    NormSetTxSocketBuffer(session, SOCKET_BUFFER);
    for (int node = 2; node < 2 + receivers; node++) NormAddAckingNode(session, node);
    NormObjectHandle stream = NormStreamOpen(session, BUFFER);
    FILE* file = fopen(path, "rb");
    if (stream == NORM_OBJECT_INVALID || !file) return fail("no stream, or no file");
    char message[MESSAGE];
    unsigned int len, kept = 0;
    while ((len = fread(message, 1, sizeof message, file)) > 0) {
        for (unsigned int at = 0; at < len;) {
            unsigned int taken = NormStreamWrite(stream, message + at, len - at);
            at += taken;
            if (taken == 0 && !wait_for(instance, NORM_TX_QUEUE_VACANCY)) return fail("no more events");
        }
        NormStreamMarkEom(stream);
        // Nothing is written over that somebody may lack.
        kept += len;
        if (kept < BUFFER / 2) continue;
        kept = 0;
        NormSetWatermark(session, stream, true);
        if (receivers > 0 && !wait_for(instance, NORM_TX_WATERMARK_COMPLETED)) return fail("no more events");
    }
    NormStreamFlush(stream, true, NORM_FLUSH_ACTIVE);
    for (int again = 0; receivers > 0; again++) {
        NormSetWatermark(session, stream, true);
        if (!wait_for(instance, NORM_TX_WATERMARK_COMPLETED)) return fail("no more events");
        if (NormGetAckingStatus(session, NORM_NODE_ANY) == NORM_ACK_SUCCESS) break;
        if (again == AGAIN) return fail("not all have acknowledged");
    }
    NormStreamClose(stream, true);
    return wait_for(instance, NORM_TX_OBJECT_PURGED) ? 0 : fail("no more events");
}

static int receive_stream(NormInstanceHandle instance, NormSessionHandle session, const char* path) {
    FILE* file = fopen(path, "wb");
    // Otherwise it begins with what it hears first, and acknowledges all the same.
    NormSetDefaultSyncPolicy(session, NORM_SYNC_ALL);
    if (!file || !NormStartReceiver(session, 16 * BUFFER)) return fail("cannot receive");
    NormSetRxSocketBuffer(session, SOCKET_BUFFER);
    printf("listening\n");
    fflush(stdout);
    NormEvent event;
    char octets[65536];
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type != NORM_RX_OBJECT_UPDATED && event.type != NORM_RX_OBJECT_COMPLETED) {
            if (event.type == NORM_RX_OBJECT_ABORTED) return fail("the stream was given up");
            continue;
        }
        for (unsigned int len = sizeof octets;; len = sizeof octets) {
            if (!NormStreamRead(event.object, octets, &len)) {
                printf("broken\n");
                fflush(stdout);
                continue;
            }
            if (len == 0) break;
            fwrite(octets, 1, len, file);
        }
        fflush(file);
        if (event.type == NORM_RX_OBJECT_COMPLETED) {
            printf("complete\n");
            fflush(stdout);
        }
    }
    return fail("no more events");
}

int main(int count, char** words) {
    bool sending = count == 8 && strcmp(words[1], "send") == 0;
    if (!sending && count != 7) return fail("see the top of norm_stream_peer.c");
    NormInstanceHandle instance = NormCreateInstance(false);
    NormSessionHandle session = NormCreateSession(instance, words[2], atoi(words[3]), sending ? 1 : atoi(words[5]));
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, words[4]);
    NormSetRxPortReuse(session, true);
    return sending ? send_stream(instance, session, atof(words[5]), words[6], atoi(words[7]))
                   : receive_stream(instance, session, words[6]);
}
