#pragma once

#include <memory>
#include <string>

#include "base/deadline.h"
#include "cluster/store.h"
#include "transport/engine_table.h"
#include "transport/transport.h"

namespace cohort::transport {

/// The door of this folder: messages by TCP, through libgloo, between processes anywhere.
///
///   gloo_engine.cc       an Engine: each connect() is a new mesh, under keys of its own
///   gloo_transport.cc    messages, deadlines, errors: a Transport
///   gloo_connections.h   connecting, and what libgloo leaves open when a peer dies or closes

struct GlooOptions {
  /// An address or name of this host, on which the peers can reach it; empty: they share the host.
  std::string bind_address = "";
  /// For the whole mesh to be connected.
  Duration connect_timeout = std::chrono::seconds(60);
  /// Of the keys in the store. Groups that use the same store must differ in it.
  std::string key_prefix = "gloo";
};

/// One rank's end of a group connected by TCP through libgloo; all ranks call it at about the same
/// time with the same store. Make it after fork(): it has a background thread, which moves the
/// bytes. From then on the process ignores SIGPIPE, unless it handles it.
///
/// A send completes when the peer has started the matching receive. libgloo closes the connections
/// to all peers when one operation times out, so after a timeout every call throws it again.
std::unique_ptr<Transport> make_gloo_transport(int rank, int size, cluster::Store& store,
                                               const GlooOptions& options = {});

/// TCP between all ranks. See EngineRow. A group is a mesh of its own: its ranks connect again.
std::unique_ptr<Engine> make_gloo_engine(const EngineOptions& options, const Peers& peers,
                                         cluster::Store& store, Deadline deadline);

}  // namespace cohort::transport
