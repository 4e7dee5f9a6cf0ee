"""Generators of dialogues: everything the licensed sets have too little of."""
