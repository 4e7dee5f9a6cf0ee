// recall.h  What memory has to say to a conversation, as text of it: a model can use only what it can read.
//
// Notes of the one who asks are looked up for every message of the user, not for the last alone. So a conversation that
// goes on begins with the same bytes as before, and what was computed for it still fits.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/message.h"
#include "orchestrator/chat_chunk.h"
#include "orchestrator/chat_request.h"
#include "orchestrator/memory_service.h"
#include "retrieval/question.h"

namespace chimere::orchestrator {

// What was asked last: the text of the user's last message; empty when there is none.
std::string question_of(const std::vector<chat::Message>& messages);

// Puts the notes of the request's owner into the user's messages that they are about, and `passages` into the last of
// them. Gives the notes of the last one. Without a match the messages stay as they are. Texts for which there is no
// room, at most a quarter of the context for a message, are left out. `messages`: those of the request, to be changed.
std::vector<UsedPassage> recall(const MemoryService& memory, const ChatRequest& request,
                                const std::vector<UsedPassage>& passages, int context_length,
                                std::vector<chat::Message>& messages);

// How much a word tells, by its place in the vocabulary. The tokenizer outlives it.
retrieval::Rarity rarity_by(const Tokenizer& tokenizer);

// What was found for a message, in the words that the model in the box reads best (docs/engram.md): the sentence that
// is nearest to the question, the texts that say more than it, and, before a plain question, the wish for a sentence.
// `fact`: the nearest sentence, part of one of the texts.
std::string as_told(const std::vector<std::string>& texts, std::string_view fact, bool wants_sentence);

// Puts a text before what a message says, on lines of its own. It is words of the message like all others: input,
// never control tokens.
void put_before(chat::Message& message, const std::string& text);

}  // namespace chimere::orchestrator
