// system_messages_test.cpp  System texts in the middle of a conversation, with templates that take them and others.
#include "chat/system_messages.h"

#include <gtest/gtest.h>

#include "chat/chat_template.h"

namespace chimere::chat {
namespace {

Message said(const char* role, const char* text) {
  Message message;
  message.role = role;
  message.content = text;
  return message;
}

std::string shown(const std::vector<Message>& messages) {
  std::string text;
  for (const Message& message : messages) text += message.role + "(" + text_of(message) + ")";
  return text;
}

const std::vector<Message> kTalk = {said("system", "S"),    said("developer", "D"), said("user", "U"),
                                    said("system", "Mid"),  said("user", "V"),      said("assistant", "A"),
                                    said("system", "Late"), said("assistant", "B"), said("user", "W")};

TEST(SystemMessages, MoveWithoutLoss) {
  EXPECT_EQ(shown(with_system(kTalk, SystemPlace::among_users)),
            "system(S\n\nD)user(U\n\n<system>\nMid\n</system>\n\nV)assistant(A)user(<system>\nLate\n</system>)"
            "assistant(B)user(W)");
  EXPECT_EQ(shown(with_system(kTalk, SystemPlace::at_start)),
            "system(S\n\nD\n\nMid\n\nLate)user(U)user(V)assistant(A)assistant(B)user(W)");
  EXPECT_EQ(shown(with_system(kTalk, SystemPlace::in_first_user)),
            "user(S\n\nD\n\nMid\n\nLate\n\nU)user(V)assistant(A)assistant(B)user(W)");
  EXPECT_EQ(shown(with_system({said("system", "S")}, SystemPlace::in_first_user)), "user(S)");
}

std::string rendered(const char* source, const std::vector<Message>& messages) {
  auto chat_template = ChatTemplate::create(source, "", "");
  EXPECT_TRUE(chat_template) << source;
  ChatInput input;
  input.messages = messages;
  auto text = chat_template->render(input);
  EXPECT_TRUE(text) << source;
  return text ? text->text : std::string();
}

TEST(SystemMessages, AreRenderedWhereTheTemplateTakesThem) {
  const std::vector<Message> talk = {said("system", "S"), said("user", "U"), said("system", "Mid")};
  EXPECT_EQ(rendered("{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}", talk),
            "[system:S][user:U][system:Mid]");
  const std::string tagged = "[system:S][user:U\n\n<system>\nMid\n</system>]";
  EXPECT_EQ(rendered("{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                     "{{ raise_exception('at the beginning') }}{% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}",
                     talk),
            tagged);
  // One that passes over them.
  EXPECT_EQ(rendered("{% for m in messages %}{% if m.role == 'user' or loop.first %}"
                     "[{{ m.role }}:{{ m.content }}]{% endif %}{% endfor %}",
                     talk),
            tagged);
  // One that wants the user and the assistant to alternate, and one that has no system message.
  const char* alternating =
      "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'user' or m.role == 'assistant' %}"
      "{% if (m.role == 'user') != (ns.n % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}"
      "{% set ns.n = ns.n + 1 %}{% elif not loop.first %}{{ raise_exception('first') }}{% endif %}"
      "[{{ m.role }}:{{ m.content }}]{% endfor %}";
  EXPECT_EQ(
      rendered(alternating, {said("user", "U"), said("assistant", "A"), said("system", "Mid"), said("user", "V")}),
      "[user:U][assistant:A][user:<system>\nMid\n</system>\n\nV]");
  EXPECT_EQ(rendered("{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
                     "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}",
                     {said("system", "S"), said("user", "U")}),
            "[user:S\n\nU]");
}

}  // namespace
}  // namespace chimere::chat
