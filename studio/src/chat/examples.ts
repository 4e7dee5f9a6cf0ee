// examples.ts  What an empty page offers to ask.
import { t } from '../i18n'
import { chatModel } from '../store/model'

// The model in the box can do little and knows only English, so it is offered what it answers rightly:
// tests/studio/examples.spec.ts asks it every one of these, with several seeds.
const BOX = 'chimere-nano'
const IN_THE_BOX = [
  'Write a short story about a robot.',
  'Tom has 12 apples and buys 9 more. How many apples does he have?',
  'What is the capital of Japan?',
  'Write a Python function that adds two numbers.',
]

export const isModelInTheBox = () => chatModel.value?.id === BOX

// None before it is known who would answer.
export const examples = (): string[] => {
  if (!chatModel.value) return []
  return isModelInTheBox() ? IN_THE_BOX : [t('example1'), t('example2'), t('example3')]
}
