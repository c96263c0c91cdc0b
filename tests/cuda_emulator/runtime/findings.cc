// SPDX-License-Identifier: Apache-2.0
// Findings: collected while a call runs, told as the error of the call.
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "machine.h"

extern char** environ;

namespace cuemu {

constexpr size_t kMostFindings = 12;  // more of them seldom tell more

bool stopped = false, incomplete = false;
int api_error = 0;
static std::vector<std::string> findings;
static size_t left_out = 0;
static std::set<std::string> known;                  // one finding for each kind, kernel and place
static std::set<std::pair<int, void*>> known_addresses;

bool first_time(int rule, void* return_address) {
  return known_addresses.insert({rule, return_address}).second;
}

static std::string base_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

std::string place(const char* file, int line) {
  return base_name(file) + ":" + std::to_string(line);
}

// What a program prints; empty when it cannot be run.
static std::string output_of(const char* const* arguments) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1 /* O_WRONLY */, 0);
  pid_t child;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr,
                                  const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string text;
  char part[512];
  ssize_t n;
  while (!failed && (n = read(ends[0], part, sizeof part)) > 0) text.append(part, n);
  close(ends[0]);
  if (!failed) waitpid(child, nullptr, 0);
  return text;
}

// File and line of an instruction, and the callers it was inlined into: "a.cuh:3 < b.cu:9".
std::string place(void* return_address) {
  Dl_info library;
  if (!return_address || !dladdr(return_address, &library) || !library.dli_fname) return "";
  char offset[32];
  snprintf(offset, sizeof offset, "0x%zx",
           reinterpret_cast<Address>(return_address) - 1 -
               reinterpret_cast<Address>(library.dli_fbase));
  const char* command[] = {"addr2line", "-i", "-e", library.dli_fname, offset, nullptr};
  const std::string lines = output_of(command);
  std::string at;
  int frames = 0;
  for (size_t from = 0, to; (to = lines.find('\n', from)) != std::string::npos; from = to + 1) {
    std::string frame = lines.substr(from, to - from);  // spaces may stand in the path
    frame = frame.substr(0, frame.find(" (discriminator"));
    if (frame.find("/cuemu/") != std::string::npos || frame[0] == '?') continue;
    if (frames++ == 4) break;
    at += (at.empty() ? "" : " < ") + base_name(frame);
  }
  return at;
}

void find(const char* kind, const std::string& at, const char* format, ...) {
  if (!known.insert(std::string(kind) + "|" + launch.with.kernel + "|" + at).second) return;
  if (findings.size() == kMostFindings) {
    left_out++;
    return;
  }
  char words[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(words, sizeof words, format, arguments);
  va_end(arguments);
  std::string text = std::string("[") + kind + "] " + words;
  if (!at.empty()) text += " at " + at;
  if (*launch.with.kernel) text += std::string(", kernel ") + launch.with.kernel;
  if (current) {
    const uint3 b = block.index, t = current->index;
    snprintf(words, sizeof words, ", block (%u,%u,%u) thread (%u,%u,%u)", b.x, b.y, b.z, t.x, t.y,
             t.z);
    text += words;
  }
  findings.push_back(text);
}

static std::string all_findings() {
  std::string text;
  for (const std::string& f : findings) text += (text.empty() ? "" : "\n") + f;
  if (left_out) text += "\n... and " + std::to_string(left_out) + " more";
  return text;
}

}  // namespace cuemu

using namespace cuemu;

extern "C" {

// All findings since the last report, one a line; they are forgotten with it.
const char* cuemu_report(void) {
  static std::string text;
  text = all_findings();
  findings.clear();
  known.clear();
  known_addresses.clear();
  left_out = 0;
  stopped = incomplete = false;
  api_error = 0;
  launch.with.kernel = "";
  return text.c_str();
}

int cuemu_error(int clear) {
  const int error = stopped ? 700 : api_error;  // what else was found, hardware would not notice
  if (clear) api_error = 0;
  return error;
}

const char* cuemu_error_text(int error) {
  static std::string text;
  switch (error) {
    case 0: return "no error";
    case 1: return "invalid argument";
    case 9: return "invalid configuration argument";
    case 700: text = "an illegal memory access was encountered"; break;
    default: text = "unknown error"; break;
  }
  text += " (emulator)\n" + all_findings();
  return text.c_str();
}

void cuemu_trap(const char* what, const char* file, int line) {
  find("trap", place(file, line), "%s", what);
  if (in_kernel()) leave();
}

void cuemu_forbidden(const char* call, const char* file, int line) {
  find("host-api", place(file, line), "%s must not be called by a launcher: it breaks a captured "
       "graph or waits for the device", call);
}
}
