#pragma once

#include "fuzz.h"

/// The targets, one file each; what each is fed with stands there.
namespace cohort::fuzz {

using Seeds = std::vector<std::string>;

void address(Bytes input);
Seeds address_seeds();
void claims(Bytes input);
Seeds claims_seeds();
void codec(Bytes input);
Seeds codec_seeds();
void csv(Bytes input);
Seeds csv_seeds();
void door(Bytes input);
Seeds door_seeds();
void gossip(Bytes input);
Seeds gossip_seeds();
void idx(Bytes input);
Seeds idx_seeds();
void libsvm(Bytes input);
Seeds libsvm_seeds();
void manifest(Bytes input);
Seeds manifest_seeds();
void model(Bytes input);
Seeds model_seeds();
void replica(Bytes input);
Seeds replica_seeds();
void reply(Bytes input);
Seeds reply_seeds();
void report(Bytes input);
Seeds report_seeds();
void request(Bytes input);
Seeds request_seeds();
void rpc_frames(Bytes input);
Seeds rpc_seeds();
void safetensors(Bytes input);
Seeds safetensors_seeds();
void state(Bytes input);
Seeds state_seeds();
void store(Bytes input);
Seeds store_seeds();
void toml(Bytes input);
Seeds toml_seeds();

}  // namespace cohort::fuzz
