/* Licences of the libraries in this file: NOTICE.txt */
import{a,b}from"./chunk-4V2IVW6L.js";import"./chunk-GE4B5JTS.js";import"./chunk-HYAX4NYF.js";import"./chunk-5FCUUUAC.js";export{b as default,a as verdict};
