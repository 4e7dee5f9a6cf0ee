#include "documents/pdf.h"

#include "base/platform/child_process.h"
#include "documents/readers.h"

namespace chimere::documents {
namespace {

constexpr const char* kProgram = "pdftotext";
constexpr size_t kShownErrorBytes = 200;
constexpr char kPageEnd = '\f';

Error no_pdf(const std::string& name, const std::string& why) {
  return {Code::invalid_argument, name + ": the PDF could not be read: " + why};
}

// The first line of what it complained about.
std::string complaint(const ProgramRun& run) {
  const std::string line = run.error.substr(0, run.error.find('\n')).substr(0, kShownErrorBytes);
  return line.empty() ? describe(run.exit) : line;
}

Result<std::string> text_of_pdf(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  if (find_program(kProgram).empty()) {
    return Error{Code::unsupported,
                 name + ": PDFs are read by pdftotext, which is not installed (Debian: poppler-utils)"};
  }
  RunOptions run;
  run.input = bytes;
  run.max_output_bytes = options.max_text_bytes;
  run.deadline = std::chrono::steady_clock::now() + options.pdf_time;
  run.is_cancelled = options.is_cancelled;
  run.child.environment = {{"LC_ALL=C.UTF-8"}};
  run.child.limits.address_bytes = options.pdf_memory_bytes;
  run.child.limits.cpu_seconds = static_cast<uint64_t>(options.pdf_time.count());
  run.child.limits.file_bytes = 1;  // it has nothing to write but its output
  run.child.limits.open_files = 64;
  TRY_ASSIGN(ProgramRun done, run_program({kProgram, "-q", "-enc", "UTF-8", "-", "-"}, run));
  switch (done.end) {
    case ProgramRun::End::output_limit:
      return no_pdf(name, "expected at most " + std::to_string(options.max_text_bytes) + " bytes of text, found more");
    case ProgramRun::End::deadline:
      return no_pdf(name, "it took longer than " + std::to_string(options.pdf_time.count()) + " seconds");
    case ProgramRun::End::cancelled: return Error{Code::cancelled, name + ": reading it was cancelled"};
    case ProgramRun::End::exited: break;
  }
  if (!done.exit.is_success()) return no_pdf(name, complaint(done));
  return Result<std::string>{std::move(done.output)};
}

}  // namespace

Result<Document> read_pdf(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  TRY_ASSIGN(const std::string raw, text_of_pdf(bytes, name, options));
  const std::string text = to_plain_utf8(raw);
  Document document;
  std::string_view rest = text;
  for (uint32_t page = 1; !rest.empty(); ++page) {
    const size_t end = rest.find(kPageEnd);
    add_paragraphs(rest.substr(0, end), "", {0, page}, document.blocks);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  }
  if (document.blocks.empty()) {
    return Error{Code::unsupported, name + ": the PDF has no text, only pictures of it"};
  }
  return Result<Document>{std::move(document)};
}

}  // namespace chimere::documents
