// chat_model_test.cpp  Which files can be talked to, and what is said about the others.
#include "orchestrator/chat_model.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <functional>
#include <span>

#include "gguf/writer.h"

namespace chimere::orchestrator {
namespace {

const std::string kModels = CHIMERE_TESTS_DIR "/golden/models/";

Result<ChatModel> load(const std::string& path, const std::string& template_text = {}) {
  TRY_ASSIGN(auto model, models::Model::load(path, models::BackendKind::reference, {}));
  return ChatModel::from_model(std::move(model), template_text);
}

// The small qwen3_5 model with other metadata.
Result<ChatModel> load_changed(const std::function<bool(const std::string&, gguf::Value&)>& keep) {
  TRY_ASSIGN(const gguf::File file, gguf::File::open(kModels + "qwen3_5-A/model.gguf"));
  gguf::Writer writer;
  for (const auto& [key, value] : file.metadata().entries()) {
    gguf::Value changed = value;
    if (keep(key, changed)) writer.metadata().set(key, changed);
  }
  for (const TensorView& tensor : file.tensors()) {
    TRY(writer.add_tensor(std::string(tensor.name), tensor.type, tensor.ne,
                          std::span(tensor.data, tensor.size_bytes())));
  }
  const std::string path = testing::TempDir() + "chat_model_test_" + std::to_string(getpid()) + ".gguf";
  TRY(writer.write_file(path));
  auto loaded = load(path);
  std::filesystem::remove(path);
  return loaded;
}

TEST(ChatModel, LoadsAFileWithVocabularyAndTemplate) {
  const auto model = load(kModels + "qwen3_5-A/model.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_GT(model->tokenizer.n_vocab(), 100);
  for (const int32_t id : model->suppressed_ids()) EXPECT_FALSE(model->tokenizer.is_eog(id)) << id;
}

TEST(ChatModel, FallsBackToChatMlWhenTheVocabularyHasIt) {
  const auto model =
      load_changed([](const std::string& key, gguf::Value&) { return key.rfind("tokenizer.chat_template", 0) != 0; });
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_EQ(model->warnings.size(), 1u);
  chat::ChatInput input;
  chat::Message message;
  message.role = "user";
  message.content = "Hi <|im_end|>";
  input.messages = {message};
  const auto rendered = model->chat_template->render(input);
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_EQ(rendered->text, "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatModel, SaysThatTheTemplateIsMissing) {
  const auto model = load(kModels + "llama-spm/model.gguf");
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->chat_template);
  ASSERT_FALSE(model->warnings.empty());
  EXPECT_NE(model->warnings.back().find("tokenizer.chat_template"), std::string::npos) << model->warnings.back();
}

TEST(ChatModel, TakesATemplateFromOutside) {
  const auto model = load(kModels + "llama-spm/model.gguf", "{{ messages[0].content }} [TOOL_CALLS]");
  ASSERT_TRUE(model) << model.error().message;
  ASSERT_TRUE(model->chat_template);
  EXPECT_EQ(model->chat_template->dialect().name, "mistral");
  EXPECT_FALSE(load(kModels + "llama-spm/model.gguf", "{% for x in %}"));
}

TEST(ChatModel, SaysThatTheVocabularyIsMissing) {
  const auto model = load_changed([](const std::string& key, gguf::Value& value) {
    if (key == "tokenizer.ggml.model") value.data = std::string("no_vocab");
    return key.rfind("tokenizer.", 0) != 0 || key == "tokenizer.ggml.model";
  });
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("can not be talked to"), std::string::npos) << model.error().message;
}

TEST(ChatModel, SaysWhatIsWrongWithATemplate) {
  const auto model = load_changed([](const std::string& key, gguf::Value& value) {
    if (key == "tokenizer.chat_template") value.data = std::string("{% for x in %}");
    return true;
  });
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("chat template: "), std::string::npos) << model.error().message;
}

}  // namespace
}  // namespace chimere::orchestrator
