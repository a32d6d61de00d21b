# Puts the viewer's files together as one page, and the page into a source file:
#   cmake -DVIEWER=<folder> -DOUTPUT=<file.cpp> -P embed.cmake
file(READ ${VIEWER}/timeline.html page)
file(READ ${VIEWER}/timeline.css style)
set(script "")
foreach(part
        text columns colours boxes curve model graph critical_path slack reasons
        layout layer svg_context paint paint_memory paint_arrows minimap
        facts card figures header search link summary export input timeline handle)
  file(READ ${VIEWER}/${part}.js text)
  string(APPEND script "${text}\n")
endforeach()
string(REPLACE "{{style}}" "${style}" page "${page}")
string(REPLACE "{{script}}" "${script}" page "${page}")
file(WRITE ${OUTPUT} "#include \"report/viewer_page.h\"

namespace counterflow {

const std::string_view kViewerPage = R\"viewer(${page})viewer\";

}  // namespace counterflow
")
