/*
 * NRL's libnorm at the other end:
 *
 *   peer send GROUP PORT INTERFACE RECEIVERS [WORD=NUMBER ..] [file=PATH | data=PATH ..]
 *   peer receive GROUP PORT INTERFACE NODE DIRECTORY [WORD=NUMBER ..]
 *
 * The sender is node 1 and sends each file as a file or as data, whose INFO is the name; it says "acknowledged" and
 * ends when nodes 2, 3 .. have everything. Words: rate (bit/s), block, parity, auto, fec (0: the library's choice),
 * grtt_ms, backoff, txloss and rxloss (percent of all its messages). A receiver says "listening", and "complete NAME"
 * for each object that has its name in the directory, and answers until it is terminated. Words: unicast, txloss,
 * rxloss. The library's header is C++ in two places: cc -x c++ peer.c -lnorm.
 */

#include <normApi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEGMENT = 1400, BUFFER = 64 << 20, SOCKET_BUFFER = 4 << 20, ASK_AGAIN = 30 };

static int fail(const char* what) {
    fprintf(stderr, "peer: %s\n", what);
    return 1;
}

/* The number that a word gives, or `otherwise`. */
static double number(char** words, int count, const char* name, double otherwise) {
    size_t len = strlen(name);
    for (int at = 0; at < count; at++)
        if (strncmp(words[at], name, len) == 0 && words[at][len] == '=') return atof(words[at] + len + 1);
    return otherwise;
}

static NormObjectHandle enqueue(NormSessionHandle session, const char* word) {
    const char* path = word + 5;
    const char* slash = strrchr(path, '/');
    const char* name = slash ? slash + 1 : path;
    if (strncmp(word, "file=", 5) == 0) return NormFileEnqueue(session, path, name, strlen(name));
    FILE* file = fopen(path, "rb");
    if (!file) return NORM_OBJECT_INVALID;
    char* content = (char*)malloc(BUFFER);  // the library's until the end
    size_t len = fread(content, 1, BUFFER, file);
    fclose(file);
    return NormDataEnqueue(session, content, len, name, strlen(name));
}

static int send_all(NormInstanceHandle instance, NormSessionHandle session, int receivers, char** words, int count) {
    NormSetTxRate(session, number(words, count, "rate", 8e6));
    NormSetGrttEstimate(session, number(words, count, "grtt_ms", 50) / 1000);
    NormSetBackoffFactor(session, number(words, count, "backoff", 4));
    NormSetAutoParity(session, number(words, count, "auto", 0));
    int block = number(words, count, "block", 64), parity = number(words, count, "parity", 16);
    int fec = number(words, count, "fec", 0);
    if (!NormStartSender(session, NormGetRandomSessionId(), BUFFER, SEGMENT, block, parity, fec)) return fail("cannot send");
    NormSetTxSocketBuffer(session, SOCKET_BUFFER);
    for (int node = 2; node < 2 + receivers; node++) NormAddAckingNode(session, node);
    NormObjectHandle object = NORM_OBJECT_INVALID;
    for (int at = 0; at < count; at++) {
        if (strncmp(words[at], "file=", 5) && strncmp(words[at], "data=", 5)) continue;
        object = enqueue(session, words[at]);
        if (object == NORM_OBJECT_INVALID) return fail("cannot read a file");
    }
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

/* Gives a complete object the name that its INFO says. */
static int keep(NormObjectHandle object, const char* into) {
    char name[4096], from[4096], to[8192];
    int len = NormObjectGetInfo(object, name, sizeof name - 1);
    name[len] = 0;
    snprintf(to, sizeof to, "%s/%s", into, name);
    if (NormObjectGetType(object) == NORM_OBJECT_DATA) {
        FILE* file = fopen(to, "wb");
        if (!file) return fail("cannot write");
        fwrite(NormDataAccessData(object), 1, NormObjectGetSize(object), file);
        fclose(file);
    } else if (!NormFileGetName(object, from, sizeof from) || rename(from, to)) {
        return fail("cannot name the file");
    }
    printf("complete %s\n", name);
    fflush(stdout);
    return 0;
}

static int receive_all(NormInstanceHandle instance, NormSessionHandle session, const char* into, char** words, int count) {
    if (!NormSetCacheDirectory(instance, into)) return fail("cannot write there");
    NormSetDefaultUnicastNack(session, number(words, count, "unicast", 0) > 0);
    if (!NormStartReceiver(session, BUFFER)) return fail("cannot receive");
    NormSetRxSocketBuffer(session, SOCKET_BUFFER);
    printf("listening\n");
    fflush(stdout);
    NormEvent event;
    while (NormGetNextEvent(instance, &event, true)) {
        if (event.type == NORM_RX_OBJECT_ABORTED) return fail("an object was given up");
        if (event.type == NORM_RX_OBJECT_COMPLETED && keep(event.object, into)) return 1;
    }
    return fail("no more events");
}

int main(int count, char** words) {
    if (count < 7) return fail("see the top of peer.c");
    bool sending = strcmp(words[1], "send") == 0;
    NormInstanceHandle instance = NormCreateInstance(false);
    NormSessionHandle session = NormCreateSession(instance, words[2], atoi(words[3]), sending ? 1 : atoi(words[5]));
    if (session == NORM_SESSION_INVALID) return fail("no session");
    NormSetMulticastInterface(session, words[4]);
    NormSetRxPortReuse(session, true);
    NormSetTxLoss(session, number(words, count, "txloss", 0));
    NormSetRxLoss(session, number(words, count, "rxloss", 0));
    return sending ? send_all(instance, session, atoi(words[5]), words + 6, count - 6)
                   : receive_all(instance, session, words[6], words + 7, count - 7);
}
