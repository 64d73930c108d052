// Presets: named messages in files, which the user's fields override.
//
// A message with `preset: "x"` starts from <folder>/<kind>/x.txtpb. Fields written over it replace singular fields,
// merge into messages, and replace whole lists. A preset may itself name a preset of its kind (what it starts from),
// and messages inside it may name theirs. Where the user names a preset inside (cluster { preset: "c" accelerator {
// preset: "b" } }), what the outer preset says about that message is dropped: the user chose another start.
#ifndef ORRERY_PROTO_PRESETS_H_
#define ORRERY_PROTO_PRESETS_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "google/protobuf/message.h"
#include "proto/origins.h"

namespace orrery::spec {

// "models" for Model and so on; "" for a message without presets.
std::string KindOf(const google::protobuf::Descriptor* type);

// Names in any folder of the search path, in order, each once.
std::vector<std::string> PresetNames(const std::string& kind, const std::vector<std::string>& spec_path);

// "a, b, c", or words that say that there is none.
std::string PresetNameList(const std::string& kind, const std::vector<std::string>& spec_path);

// Presets that were read without an error, so that each is read once for many runs. They have no positions. Threads may
// share one.
class PresetCache {
 public:
  // Null where it is not known.
  std::shared_ptr<const google::protobuf::Message> Find(const std::string& kind, const std::string& name) const;
  void Keep(const std::string& kind, const std::string& name, const google::protobuf::Message& preset);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const google::protobuf::Message>> presets_;
};

class PresetExpander {
 public:
  // `cache` may be null and must be of this spec path; origins that record make no use of it.
  PresetExpander(const std::vector<std::string>& spec_path, Origins* origins, Diagnostics* diagnostics,
                 PresetCache* cache = nullptr)
      : spec_path_(spec_path),
        origins_(origins),
        diagnostics_(diagnostics),
        cache_(origins->recording() ? nullptr : cache) {}

  // Expands `message`, which stands at `path`, and everything inside. Afterwards no `preset` is set, and `name` is.
  // Messages that have presets, are required and are missing get an error that lists the names.
  void Expand(const std::string& path, google::protobuf::Message* message);
  // The first step of that: puts the chain of presets that `message` starts from underneath its own fields.
  void PutUnderneath(const std::string& path, google::protobuf::Message* message);

 private:
  // Reads one file into `message`; false, with an error where the preset was named, if there is none.
  bool Read(const std::string& kind, const std::string& name, Position named_at, const std::string& path,
            google::protobuf::Message* message, Origins* origins);

  const std::vector<std::string>& spec_path_;
  Origins* origins_;
  Diagnostics* diagnostics_;
  PresetCache* cache_;
};

// Writes the fields of `above` over `base`, as described at the top of this file.
void MergeOver(const google::protobuf::Message& above, const Origins& above_origins, const std::string& path,
               google::protobuf::Message* base, Origins* base_origins);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_PRESETS_H_
