"""Recipe of chimere-nano: data, tokenizer, model, training, export and evaluation."""
