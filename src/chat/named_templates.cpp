// named_templates.cpp  The formats, one a name.
#include "chat/named_templates.h"

#include <array>

namespace chimere::chat {
namespace {

struct Named {
  std::string_view name;
  std::string_view source;
};

constexpr std::string_view kChatMl =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

constexpr std::string_view kCommandR =
    "{% for m in messages %}{{ '<|START_OF_TURN_TOKEN|>' }}{% if m.role == 'system' %}{{ '<|SYSTEM_TOKEN|>' }}"
    "{% elif m.role == 'assistant' %}{{ '<|CHATBOT_TOKEN|>' }}{% else %}{{ '<|USER_TOKEN|>' }}{% endif %}"
    "{{ m.content | trim }}{{ '<|END_OF_TURN_TOKEN|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %}";

constexpr std::string_view kDeepSeek3 =
    "{% for m in messages %}{% if m.role == 'system' %}{{ m.content + '\\n\\n' }}{% elif m.role == 'user' %}"
    "{{ '<｜User｜>' + m.content }}{% else %}{{ '<｜Assistant｜>' + m.content + '<｜end▁of▁sentence｜>' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<｜Assistant｜>' }}{% endif %}";

// Gemma has no place for a system message: it stands before the first question.
constexpr std::string_view kGemma =
    "{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}"
    "{% set ns.system = m.content | trim + '\\n\\n' %}{% else %}{{ '<start_of_turn>' }}"
    "{{ 'model' if m.role == 'assistant' else 'user' }}{{ '\\n' + ns.system + m.content | trim + '<end_of_turn>\\n' }}"
    "{% set ns.system = '' %}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}";

constexpr std::string_view kGranite =
    "{% for m in messages %}{{ '<|start_of_role|>' + m.role + '<|end_of_role|>' + m.content + '<|end_of_text|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %}";

constexpr std::string_view kLlama2 =
    "{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}"
    "{% set ns.system = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' %}{% elif m.role == 'assistant' %}"
    "{{ ' ' + m.content + ' ' + eos_token }}{% else %}{{ '[INST] ' + ns.system + m.content + ' [/INST]' }}"
    "{% set ns.system = '' %}{% endif %}{% endfor %}";

constexpr std::string_view kLlama3 =
    "{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m.content | trim + "
    "'<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

constexpr std::string_view kMistralV1 =
    "{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}"
    "{% set ns.system = m.content + '\\n\\n' %}{% elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}"
    "{% else %}{{ ' [INST] ' + ns.system + m.content + ' [/INST]' }}{% set ns.system = '' %}{% endif %}{% endfor %}";

constexpr std::string_view kMistralV3 =
    "{% set ns = namespace(system='') %}{% for m in messages %}{% if m.role == 'system' %}"
    "{% set ns.system = m.content + '\\n\\n' %}{% elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}"
    "{% else %}{{ '[INST] ' + ns.system + m.content + '[/INST]' }}{% set ns.system = '' %}{% endif %}{% endfor %}";

constexpr std::string_view kMistralV7 =
    "{% for m in messages %}{% if m.role == 'system' %}{{ '[SYSTEM_PROMPT] ' + m.content + '[/SYSTEM_PROMPT]' }}"
    "{% elif m.role == 'assistant' %}{{ ' ' + m.content + eos_token }}"
    "{% else %}{{ '[INST] ' + m.content + '[/INST]' }}{% endif %}{% endfor %}";

constexpr std::string_view kPhi3 =
    "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

constexpr std::string_view kPhi4 =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '<|im_sep|>' + m.content + '<|im_end|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}";

constexpr std::string_view kVicuna =
    "{% for m in messages %}{% if m.role == 'system' %}{{ m.content + '\\n\\n' }}{% elif m.role == 'assistant' %}"
    "{{ 'ASSISTANT: ' + m.content + eos_token + '\\n' }}{% else %}{{ 'USER: ' + m.content + '\\n' }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}";

constexpr std::string_view kZephyr =
    "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + eos_token + '\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}";

constexpr std::array<Named, 14> kNamed = {{{"chatml", kChatMl},
                                           {"command-r", kCommandR},
                                           {"deepseek3", kDeepSeek3},
                                           {"gemma", kGemma},
                                           {"granite", kGranite},
                                           {"llama2", kLlama2},
                                           {"llama3", kLlama3},
                                           {"mistral-v1", kMistralV1},
                                           {"mistral-v3", kMistralV3},
                                           {"mistral-v7", kMistralV7},
                                           {"phi3", kPhi3},
                                           {"phi4", kPhi4},
                                           {"vicuna", kVicuna},
                                           {"zephyr", kZephyr}}};

}  // namespace

std::string_view named_template(std::string_view name) {
  for (const Named& known : kNamed) {
    if (known.name == name) return known.source;
  }
  return {};
}

std::string template_names() {
  std::string names;
  for (const Named& known : kNamed) names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

}  // namespace chimere::chat
