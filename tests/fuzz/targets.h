#pragma once

#include <string>
#include <string_view>

// What is done with a hostile file, one function a format: it is read and, where it is accepted and
// small, taken through everything that may follow. The readers may refuse an input with an
// InputError; whatever else goes wrong (a crash, a hang, a sanitizer's report, another exception, a
// broken property as a std::logic_error) is a fault of ours.
namespace counterflow::fuzz {

void config(std::string_view yaml);
void schedule_file(std::string_view csv);
void program_json(std::string_view json);
void timeline_json(std::string_view json);
void flight_dump(std::string_view bytes);

// Throws std::logic_error unless `holds`.
void require(bool holds, const std::string& property);

}  // namespace counterflow::fuzz
