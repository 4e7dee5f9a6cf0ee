#include "terminal/foreign_table.h"

#include <array>

namespace chimere::apps {
namespace {

using Kind = ForeignKind;

constexpr std::string_view kBatches = "the size of batches is chosen by the engine";
constexpr std::string_view kAlways = "it is always so";
constexpr std::string_view kPlaced =
    "weights go to the card as far as they fit; --vram, --cpu-moe and --gpu-layers say otherwise";
constexpr std::string_view kOneCard = "one card computes; the variable CUDA_VISIBLE_DEVICES says which";
constexpr std::string_view kThreads = "threads are placed by the system; `taskset` and `numactl` say otherwise";
constexpr std::string_view kFromFile = "the file says so";
constexpr std::string_view kNoDownload = "nothing is downloaded here: give the path of a GGUF file";
constexpr std::string_view kNoImages = "this server reads text only";
constexpr std::string_view kNoStretch = "contexts are not stretched; files with scaled positions have them";
constexpr std::string_view kReadOnce = "weights are read once and kept";
constexpr std::string_view kNoSampler =
    "there is no such sampler here; --temp, --top-k, --top-p and --min-p are those there are";
constexpr std::string_view kGuessing = "how far is guessed is chosen by what it gains; --speculate, --draft-max";
constexpr std::string_view kAsTheModel = "the draft model goes where the model is; an eighth of --vram is for it";
constexpr std::string_view kLog = "the log goes to standard error; --log-format says how it is written";
constexpr std::string_view kCachedStates = "prompts that begin alike share their states; --cache-gb says how much";
constexpr std::string_view kOwnTools = "--odo-config names tools and MCP servers (docs/tools.md)";
constexpr std::string_view kNoVectors = "directions are not added to a model; --lora takes adapters";
constexpr std::string_view kOwnPage = "the page is part of the program; --no-page leaves it out";

constexpr auto kForeign = std::to_array<ForeignOption>({
    // The model and its place
    {"-m", Kind::value, "--model"},
    {"-a", Kind::value, "--alias"},
    {"-c --ctx-size", Kind::value, "--ctx"},
    {"-np", Kind::value, "--parallel"},
    {"-ncmoe --ncmoe --n-cpu-moe", Kind::value, "--cpu-moe"},
    {"-ctk --cache-type-k", Kind::value, "--kv-k"},
    {"-ctv --cache-type-v", Kind::value, "--kv-v"},
    {"-mu --model-url -hf -hfr --hf-repo -hff --hf-file -dr --docker-repo -hfd -hfrd --hf-repo-draft --spec-draft-hf",
     Kind::refused, kNoDownload},
    {"--embd-gemma-default --fim-qwen-1.5b-default --fim-qwen-3b-default --fim-qwen-7b-default --fim-qwen-7b-spec "
     "--fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default --gpt-oss-120b-default "
     "--vision-gemma-4b-default --vision-gemma-12b-default",
     Kind::refused_flag, kNoDownload},
    {"-hft --hf-token", Kind::off, "nothing is downloaded here"},
    {"--offline", Kind::off_flag, kAlways},
    {"-mm --mmproj -mmu --mmproj-url", Kind::refused, kNoImages},
    {"--no-mmproj --no-mmproj-auto --mmproj-auto --mmproj-offload --no-mmproj-offload", Kind::off_flag, kNoImages},
    {"-mmdev --mmproj-device --image-min-tokens --image-max-tokens --mtmd-batch-max-tokens --media-path --video-fps "
     "--video-timestamp-interval --video-ffmpeg-dir",
     Kind::off, kNoImages},
    {"-sm --split-mode -ts --tensor-split -mg --main-gpu", Kind::off, kOneCard},
    {"-fit --fit -fitt --fit-target -fitc --fit-ctx -ncffn --n-cpu-ffn", Kind::off, kPlaced},
    {"--moe-cache-mib", Kind::off, "experts in RAM are kept on the card as far as it has room; --ram-experts"},
    {"-kvo --kv-offload -nkvo --no-kv-offload --op-offload --no-op-offload --no-host", Kind::off_flag, kPlaced},
    {"--rpc", Kind::refused, "one machine computes"},
    {"--override-kv", Kind::refused,
     "a file is taken as it is; --chat-template, --ctx and --alias are what can differ"},
    {"--control-vector --control-vector-scaled --control-vector-layer-range", Kind::refused, kNoVectors},
    {"--lora-init-without-apply", Kind::off_flag, "requests name the adapters they want in `lora`"},
    {"--check-tensors", Kind::off_flag, "names and shapes are always checked"},
    {"--mlock --no-mmap --mmap -dio --direct-io --no-direct-io", Kind::off_flag, kReadOnce},
    {"-lm --load-mode -lzm --lazy-mode", Kind::off, kReadOnce},
    {"--repack -nr --no-repack", Kind::off_flag, "weights are put in the order that this machine reads best"},
    {"--list-devices", Kind::refused_flag, "`chimere doctor` tells what this machine has"},
    {"-cl --cache-list", Kind::refused_flag, kNoDownload},

    // The processor
    {"-tb --threads-batch", Kind::off, "--threads holds for prompts too"},
    {"--threads-http", Kind::off, "one thread serves all connections"},
    {"-C --cpu-mask -Cr --cpu-range --cpu-strict --prio --poll -Cb --cpu-mask-batch -Crb --cpu-range-batch "
     "--cpu-strict-batch --prio-batch --poll-batch --numa",
     Kind::off, kThreads},
    {"-b --batch-size -ub --ubatch-size", Kind::off, kBatches},
    {"-cb --cont-batching", Kind::off_flag, kAlways},
    {"-nocb --no-cont-batching", Kind::off_flag,
     "answers are always computed together; --parallel 1 has one at a time"},
    {"--warmup --no-warmup", Kind::off_flag, "there is none"},
    {"--perf --no-perf", Kind::off_flag, "every answer has its `timings`"},
    {"-bs --backend-sampling --backend_sampling", Kind::off_flag, "tokens are drawn on the card where there is one"},

    // Contexts and caches
    {"-fa --flash-attn", Kind::off, kAlways},
    {"--rope-scaling --rope-freq-base", Kind::off, kFromFile},
    {"--rope-scale --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow "
     "--yarn-beta-fast -gan --grp-attn-n -gaw --grp-attn-w",
     Kind::refused, kNoStretch},
    {"--context-shift", Kind::refused_flag,
     "a full context ends the answer; the page offers to go on without the oldest"},
    {"--no-context-shift", Kind::off_flag, kAlways},
    {"--keep", Kind::off, "a full context ends the answer"},
    {"-no-kvu --no-kv-unified", Kind::off_flag, "--ctx is of one conversation, and memory is given as it is needed"},
    {"--kv-unified-per-slot", Kind::value, "--ctx"},
    {"--swa-full", Kind::off_flag, "sliding windows are kept as far as they are needed"},
    {"--cache-prompt", Kind::off_flag, kAlways},
    {"--cache-reuse", Kind::off, kCachedStates},
    {"-cram --cache-ram -ctxcp --ctx-checkpoints --swa-checkpoints -cms --checkpoint-min-step", Kind::off,
     "--cache-gb says how much memory prompts may share"},
    {"--cache-idle-slots --no-cache-idle-slots", Kind::off_flag,
     "prompts are kept by the cache; --cache-gb 0 keeps none"},
    {"--slot-save-path", Kind::off, "states of prompts are kept by the cache; --cache-dir says where"},
    {"-sps --slot-prompt-similarity", Kind::off, kCachedStates},
    {"-dt --defrag-thold", Kind::off, "pages of the cache need no order"},

    // Answers
    {"--predict --n-predict", Kind::value, "--max-tokens"},
    {"-s", Kind::value, "--seed"},
    {"--repeat-penalty", Kind::value, "--repetition-penalty"},
    {"--samplers --sampler-seq --sampling-seq --top-nsigma --top-n-sigma --xtc-probability --xtc-threshold --typical "
     "--typical-p --adaptive-target --adaptive-decay --dynatemp-range --dynatemp-exp --mirostat --mirostat-lr "
     "--mirostat-ent",
     Kind::off, kNoSampler},
    {"--repeat-last-n", Kind::off, "requests of /completion say it: `repeat_last_n`"},
    {"--dry-multiplier --dry-base --dry-allowed-length --dry-penalty-last-n --dry-sequence-breaker", Kind::off,
     "requests say it: `dry_multiplier` and the others"},
    {"-l --logit-bias", Kind::refused, "requests say it: `logit_bias`"},
    {"--grammar --grammar-file", Kind::refused, "requests say it: `grammar`"},
    {"-j --json-schema -jf --json-schema-file --format", Kind::refused, "requests say it: `response_format`"},
    {"-r --reverse-prompt", Kind::refused, "requests say it: `stop`"},
    {"--ignore-eos", Kind::refused_flag, "requests of /completion say it: `ignore_eos`"},
    {"-sp --special", Kind::refused_flag, "special tokens are not shown"},
    {"-e --escape --no-escape", Kind::off_flag, "prompts come with requests"},
    {"--spm-infill", Kind::off_flag, "the file says in which order gaps are filled"},

    // Templates and thoughts
    {"--chat-template-file", Kind::value, "--chat-template"},
    {"--jinja", Kind::off_flag, kAlways},
    {"--no-jinja", Kind::off_flag, "templates are always read as Jinja"},
    {"--skip-chat-parsing", Kind::refused_flag, "requests say it: `/v1/completions` has text as it comes"},
    {"--no-skip-chat-parsing --prefill-assistant --reasoning-preserve", Kind::off_flag, kAlways},
    {"--no-prefill-assistant", Kind::off_flag, "requests say it: `\"continue_final_message\": false`"},
    {"--no-reasoning-preserve", Kind::off_flag, "the template says which thoughts are kept"},
    {"-rea", Kind::value, "--reasoning"},
    {"--reasoning-format", Kind::off, "a thought is always told apart from the answer"},
    {"--reasoning-effort", Kind::off,
     "requests say it: `reasoning_effort`; --thinking-mode and --thinking-budget are "
     "for those that do not"},
    {"--reasoning-budget-message", Kind::value, "--thinking-warning"},
    {"--hidethinking", Kind::off_flag, "a thought is always told apart from the answer"},

    // Guessing ahead
    {"-md --model-draft --spec-draft-model", Kind::value, "--draft-model"},
    {"--draft --draft-n --spec-draft-n-max", Kind::value, "--draft-max"},
    {"--draft-min --draft-n-min --spec-draft-n-min --draft-p-min --spec-draft-p-min --draft-p-split "
     "--spec-draft-p-split --spec-draft-sampling --spec-synth-len --spec-synth-rates --spec-ngram-mod-n-min "
     "--spec-ngram-mod-n-max --spec-ngram-mod-n-match --spec-ngram-simple-size-n --spec-ngram-simple-size-m "
     "--spec-ngram-simple-min-hits --spec-ngram-map-k-size-n --spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits "
     "--spec-ngram-map-k4v-size-n --spec-ngram-map-k4v-size-m --spec-ngram-map-k4v-min-hits --spec-ngram-size-n "
     "--spec-ngram-size-m --spec-ngram-min-hits",
     Kind::off, kGuessing},
    {"-lcs --lookup-cache-static -lcd --lookup-cache-dynamic", Kind::off,
     "repeats of the text itself are guessed from; --engram has tables"},
    {"-td --threads-draft --spec-draft-threads -tbd --threads-batch-draft --spec-draft-threads-batch -devd "
     "--device-draft --spec-draft-device -ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl -ctkd "
     "--cache-type-k-draft --spec-draft-type-k -ctvd --cache-type-v-draft --spec-draft-type-v -otd "
     "--override-tensor-draft --spec-draft-override-tensor -ncmoed --n-cpu-moe-draft --spec-draft-n-cpu-moe "
     "--spec-draft-ncmoe -Cd --cpu-mask-draft --spec-draft-cpu-mask -Crd --cpu-range-draft --spec-draft-cpu-range "
     "--cpu-strict-draft --spec-draft-cpu-strict --prio-draft --spec-draft-prio --poll-draft --spec-draft-poll -Cbd "
     "--cpu-mask-batch-draft --spec-draft-cpu-mask-batch --cpu-strict-batch-draft --spec-draft-cpu-strict-batch "
     "--prio-batch-draft --spec-draft-prio-batch --poll-batch-draft --spec-draft-poll-batch -cd --ctx-size-draft",
     Kind::off, kAsTheModel},
    {"-cmoed --cpu-moe-draft --spec-draft-cpu-moe --spec-draft-backend-sampling --no-spec-draft-backend-sampling",
     Kind::off_flag, kAsTheModel},
    {"--spec-default", Kind::off_flag, "--speculate auto, the default, is the same"},

    // The server
    {"--ssl-cert-file", Kind::value, "--tls-cert"},
    {"--ssl-key-file", Kind::value, "--tls-key"},
    {"--cors-origins", Kind::value, "--cors"},
    {"--cors-methods --cors-headers", Kind::off, "those that are needed are allowed to the origins of --cors"},
    {"--cors-credentials --no-cors-credentials", Kind::off_flag, "cookies are not used; --cors names origins"},
    {"-to --timeout", Kind::value, "--request-timeout"},
    {"--sse-ping-interval", Kind::off, "nothing is sent while there is nothing to say"},
    {"--reuse-port", Kind::refused_flag, "one process listens on a port"},
    {"--path", Kind::refused, kOwnPage},
    {"--api-prefix", Kind::refused, "paths begin at /; a proxy in front may have a prefix"},
    {"--ui-config --webui-config --ui-config-file --webui-config-file", Kind::off, "the page keeps its own settings"},
    {"--ui --webui", Kind::off_flag, kAlways},
    {"--no-ui --no-webui", Kind::flag, "--no-page"},
    {"--ui-mcp-proxy --webui-mcp-proxy -ag --agent", Kind::refused_flag, kOwnTools},
    {"--no-ui-mcp-proxy --no-webui-mcp-proxy -no-ag --no-agent", Kind::off_flag, kAlways},
    {"--tools --tools-runtime --mcp-servers-config --mcp-servers-json", Kind::refused, kOwnTools},
    {"--api-key-file", Kind::refused, "--api-keys-file takes lines name:sha256, which `chimere keys` makes"},
    {"--metrics --props --slots --embedding --embeddings --rerank --reranking", Kind::off_flag, kAlways},
    {"--pooling", Kind::off, kFromFile},
    {"--embd-normalize", Kind::off, "vectors have the length 1"},
    {"--models-dir", Kind::value, "--models"},
    {"--models-preset --model-config", Kind::refused,
     "options of single models are in `model-options` of chimere.yaml (docs/deploy.md)"},
    {"--models-autoload", Kind::off_flag, kAlways},
    {"--no-models-autoload", Kind::refused_flag, "a model is loaded when a request names it"},
    {"--sleep-idle-seconds", Kind::off,
     "--idle-sleep says after how many minutes the card is given back, --idle-unload when models of a folder are "
     "unloaded"},
    {"-v --log-verbose", Kind::flag, "--verbose"},
    {"-lv --verbosity --log-verbosity --log-file --log-colors", Kind::off, kLog},
    {"--log-disable --log-prefix --no-log-prefix --log-timestamps --no-log-timestamps --no-log-jsonl", Kind::off_flag,
     kLog},
    {"--log-prompts-dir", Kind::refused, "--log-prompts writes the bodies of requests to the log"},
    {"--completion-bash", Kind::refused_flag, "`chimere completion bash` prints it"},
    {"--usage", Kind::flag, "--help"},

    // Of `ollama run`
    {"--insecure --nowordwrap --truncate", Kind::off_flag, "it is of a terminal or of a download"},
    {"--dimensions", Kind::refused, "requests say it: `dimensions`"},
});

bool is_among(std::string_view names, std::string_view name) {
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(' ', begin), names.size());
    if (names.substr(begin, end - begin) == name) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

const ForeignOption* foreign_option(std::string_view name) {
  for (const ForeignOption& option : kForeign) {
    if (is_among(option.names, name)) return &option;
  }
  return nullptr;
}

}  // namespace chimere::apps
