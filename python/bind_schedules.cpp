#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "driver/plan.h"
#include "python/bind.h"
#include "schedules/registry.h"

// schedules: the published families.
namespace counterflow::python {
namespace {

const Family& family_named(const std::string& name) {
  if (const Family* family = find_family(name)) return *family;
  throw InputError(unknown_schedule(name));
}

std::vector<const Family*> all_families() {
  std::vector<const Family*> all;
  for (const Family& family : families()) all.push_back(&family);
  return all;
}

}  // namespace

void bind_families(py::module_& module) {
  // Families live as long as the program does.
  py::class_<Family, std::unique_ptr<Family, py::nodelete>>(module, "Family",
                                                            "A published schedule family.")
      .def_readonly("name", &Family::name)
      .def_readonly("title", &Family::title)
      .def_readonly("aliases", &Family::aliases)
      .def_readonly("summary", &Family::summary)
      .def_readonly("constraints", &Family::constraints)
      .def_readonly("formula", &Family::formula_text)
      .def_readonly("source", &Family::source)
      .def_property_readonly("placement",
                             [](const Family& f) { return std::string(name(f.placement)); })
      .def_readonly("default_chunks", &Family::default_chunks)
      .def_readonly("takes_chunks", &Family::takes_chunks)
      .def_readonly("takes_groups", &Family::takes_groups)
      .def_readonly("splits_backward", &Family::splits_backward)
      .def_readonly("fuses_pairs", &Family::fuses_pairs)
      .def_readonly("forward_only", &Family::forward_only)
      .def(
          "refusal",
          [](const Family& f, int ranks, int microbatches, int chunks, int group_size) {
            if (ranks < 1 || microbatches < 1 || chunks < 1 || group_size < 0) {
              throw InputError("ranks, microbatches and chunks count from 1, group_size from 0");
            }
            return refusal(f, {ranks, microbatches, chunks, group_size});
          },
          py::arg("ranks"), py::arg("microbatches"), py::arg("chunks") = 1,
          py::arg("group_size") = 0)
      .def("__repr__", [](const Family& f) { return fmt::format("<Family {}>", f.name); })
      .def("_repr_html_", html("family"));
  module.def("families", &all_families, py::return_value_policy::reference);
  module.def("family", &family_named, py::arg("name"), py::return_value_policy::reference);
  module.def(
      "generate",
      [](const std::string& family, const Problem& problem) {
        return generate(family_named(family), problem);
      },
      py::arg("family"), py::arg("problem"), WithoutLock());
}

}  // namespace counterflow::python
