#include "client/capi/grpc_library.h"

#include <dlfcn.h>

#include <string>

namespace penstock::capi {
namespace {

struct Loaded {
  Result result;
  const psg_api* api = nullptr;
};

Loaded Load() {
  Dl_info self{};
  std::string path = "libpenstock_grpc.so";
  if (::dladdr(reinterpret_cast<void*>(&GrpcApi), &self) != 0 &&
      self.dli_fname != nullptr) {
    const std::string own = self.dli_fname;
    const auto slash = own.rfind('/');
    if (slash != std::string::npos) path = own.substr(0, slash + 1) + path;
  }
  int flags = RTLD_NOW | RTLD_LOCAL;
#if !defined(__SANITIZE_ADDRESS__)
  flags |= RTLD_DEEPBIND;  // the sanitizer's runtime does not take it
#endif
  void* library = ::dlopen(path.c_str(), flags);
  if (library == nullptr) {
    const char* why = ::dlerror();
    return {Fail(PS_FAILED, path + ": cannot be opened: " +
                                (why ? why : "unknown error") +
                                "\n  do        install penstock-client whole")};
  }
  auto get = reinterpret_cast<decltype(&psg_get_api)>(
      ::dlsym(library, "psg_get_api"));
  const psg_api* api = get != nullptr ? get(PSG_API_VERSION) : nullptr;
  if (api == nullptr) {
    return {Fail(PS_FAILED, path + ": another version than libpenstock.so")};
  }
  return {{}, api};
}

}  // namespace

Result GrpcApi(const psg_api** api) {
  static const Loaded kLoaded = Load();
  *api = kLoaded.api;
  return kLoaded.result;
}

}  // namespace penstock::capi
