/*
 * A PKCS#11 module that fails on demand. It is compiled without headers and without a C library, with the paths of two
 * files: CONTROL has a letter for what to do in C_Sign, one for C_Login, one for the flags of the token, and one for
 * whether the token is there. JOURNAL gets a letter for each call. The signature is the data itself, twice.
 */
typedef unsigned long word;
typedef unsigned char octet;
extern int open(const char *, int, ...);
extern long read(int, void *, word);
extern long write(int, const void *, word);
extern int close(int);
extern int usleep(unsigned);
extern int pause(void);
extern void abort(void);

enum { OK = 0, ARGUMENTS = 0x7, TYPE_INVALID = 0x12, OPERATION_ACTIVE = 0x90, NOT_INITIALIZED = 0x91 };

static char control(int at) {
  char text[5] = "oo0p";
  int file = open(CONTROL, 0);
  read(file, text, 4);
  close(file);
  return text[at];
}

static void journal(char call) {
  int file = open(JOURNAL, 02001 | 0100, 0600);
  write(file, &call, 1);
  close(file);
}

#define SESSIONS 64
static word sessions = 0;
static volatile int active[SESSIONS];

static word initialize(void *arguments) { journal('i'); return OK; }
static word finalize(void *reserved) { journal('f'); return OK; }
static word slots(octet present, word *list, word *count) {
  *count = control(3) == 'p' ? 1 : 0;
  if (*count) list[0] = 7;
  return OK;
}
static word token(word slot, octet *info) {
  for (int i = 0; i < 96; i++) info[i] = ' ';
  info[0] = 't';
  char flags = control(2);
  *(word *)(info + 96) = 0x4 | (flags == 'f' ? 0x20000 : 0) | (flags == 'l' ? 0x40000 : 0);
  return OK;
}
static word session(word slot, word flags, void *application, void *notify, word *handle) {
  journal('s');
  *handle = __sync_add_and_fetch(&sessions, 1) % SESSIONS;
  active[*handle] = 0;
  return OK;
}
static word login(word handle, word user, const octet *pin, word length) {
  journal('l');
  char how = control(1);
  return how == 'i' ? 0xa0 : how == 'l' ? 0xa4 : OK;
}
static word attribute(word handle, word object, word *template, word count) {
  static const octet id[] = {1}, curve[] = {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7};
  static const word ec = 3;
  octet point[67] = {4, 65, 4};
  const octet *value = 0;
  word length = 0;
  if (template[0] == 0x102) { value = id; length = 1; }
  if (template[0] == 0x100) { value = (const octet *)&ec; length = 8; }
  if (template[0] == 0x180) { value = curve; length = 10; }
  if (template[0] == 0x181) { value = point; length = 67; }
  if (value == 0) { template[2] = -1; return TYPE_INVALID; }
  for (word i = 0; i < length; i++) ((octet *)template[1])[i] = value[i];
  template[2] = length;
  return OK;
}
static word find_begin(word handle, void *template, word count) { return OK; }
static word find(word handle, word *objects, word most, word *count) { objects[0] = 1; *count = 1; return OK; }
static word find_end(word handle) { return OK; }
static word sign_begin(word handle, void *mechanism, word key) {
  return __sync_lock_test_and_set(&active[handle], 1) ? OPERATION_ACTIVE : OK;
}
static word sign(word handle, const octet *data, word length, octet *signature, word *room) {
  char how = control(0);
  journal('S');
  if (how == 'h') for (;;) pause();
  if (how == 'c') abort();
  if (how == 's') usleep(200000);
  if (how == 'l') return 0xb3;
  if (how == 'r') return 0xe0;
  if (!active[handle]) return NOT_INITIALIZED;
  for (word i = 0; i < 2 * length; i++) signature[i] = data[i % length];
  *room = 2 * length;
  active[handle] = 0;
  return OK;
}

static struct { octet version[8]; void *functions[68]; } list = {{2, 40}};
word C_GetFunctionList(void **table) {
  list.functions[0] = initialize;
  list.functions[1] = finalize;
  list.functions[4] = slots;
  list.functions[6] = token;
  list.functions[12] = session;
  list.functions[18] = login;
  list.functions[24] = attribute;
  list.functions[26] = find_begin;
  list.functions[27] = find;
  list.functions[28] = find_end;
  list.functions[42] = sign_begin;
  list.functions[43] = sign;
  *table = &list;
  return OK;
}
