#pragma once

#include <toml++/toml.h>

#include <string>
#include <string_view>

namespace cohort::formats {

/// The one way by which text becomes TOML. Taking a tree of tables apart is recursive, so how deep
/// a text nests, by brackets and by the dots of its keys, is looked at before anything is made of
/// it. Throws Error(invalid): "<source>:<line>: this is not TOML: …".
toml::table parse_toml(std::string_view text, const std::string& source);

/// What a value is, for "must be a number, but is the string "ten"".
std::string description_of(const toml::node& node);

}  // namespace cohort::formats
