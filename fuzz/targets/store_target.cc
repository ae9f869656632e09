// Messages of the store, one after the other as they come from a socket.

#include "cluster/socket_store.h"
#include "targets.h"

namespace cohort::fuzz {

using cluster::StoreMessage;

void store(Bytes input) {
  std::string left(text_of(input));
  while (const auto message = cluster::decode_store_message(left)) {
    std::string again = cluster::encode_store_message(*message);
    require(cluster::decode_store_message(again) == message, "a message comes back as it was");
  }
}

Seeds store_seeds() {
  const std::string set = cluster::encode_store_message({StoreMessage::Kind::set, 7, "a/b", "v"});
  const std::string add = cluster::encode_store_message({StoreMessage::Kind::add, 8, "n", "-3"});
  const std::string get = cluster::encode_store_message({StoreMessage::Kind::get, 9, "a/b", ""});
  return {set, set + add + get, get + add.substr(0, 30)};
}

}  // namespace cohort::fuzz
